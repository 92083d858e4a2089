// Does this CPU have the instructions that the library was compiled for?
//
// A program asks first thing in main, before it touches a tensor; without that, a binary carried to
// an older machine dies of an illegal instruction with no word:
//   if (const char* missing = tg::missing_cpu_feature()) {
//     std::fprintf(stderr, "this CPU lacks %s, which this program was compiled for; build it again
//     on "
//                          "this machine, or with -DTAPEGRAD_ARCH=none\n", missing);
//     return 1;
//   }
#pragma once

namespace tg {

// The instruction sets that a compiler may use when TAPEGRAD_ARCH allows it.
struct CpuFeatures {
  bool sse42 = false, popcnt = false, lzcnt = false, bmi1 = false, bmi2 = false, movbe = false;
  bool avx = false, f16c = false, fma = false, avx2 = false;
  bool avx512f = false, avx512dq = false, avx512cd = false, avx512bw = false, avx512vl = false;
  bool avx512vbmi = false, avx512vnni = false, avx512bf16 = false, avx512fp16 = false;
};

// What the compiler was allowed to use for the library.
extern const CpuFeatures kCompiledFor;

// What this machine can run: the CPU has it and the operating system saves its registers.
CpuFeatures cpu_features() noexcept;

// The name of the first feature of `needed` that `present` lacks ("AVX2"), or nullptr when all are
// there.
const char* missing_cpu_feature(const CpuFeatures& needed, const CpuFeatures& present) noexcept;

// The same for this library on this machine.
const char* missing_cpu_feature() noexcept;

}  // namespace tg
