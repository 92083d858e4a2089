// The one file that is compiled for the oldest CPU of its family (see CMakeLists.txt). It uses
// nothing of the standard library: an inline function shared with another file could be that file's
// copy, made of the very instructions that are asked for here.
#include "tapegrad/core/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tg {

namespace {

struct NamedFeature {
  bool CpuFeatures::*member;
  const char* name;
};

constexpr NamedFeature kNames[] = {
    {&CpuFeatures::sse42, "SSE4.2"},
    {&CpuFeatures::popcnt, "POPCNT"},
    {&CpuFeatures::lzcnt, "LZCNT"},
    {&CpuFeatures::bmi1, "BMI1"},
    {&CpuFeatures::bmi2, "BMI2"},
    {&CpuFeatures::movbe, "MOVBE"},
    {&CpuFeatures::avx, "AVX"},
    {&CpuFeatures::f16c, "F16C"},
    {&CpuFeatures::fma, "FMA"},
    {&CpuFeatures::avx2, "AVX2"},
    {&CpuFeatures::avx512f, "AVX-512 F"},
    {&CpuFeatures::avx512dq, "AVX-512 DQ"},
    {&CpuFeatures::avx512cd, "AVX-512 CD"},
    {&CpuFeatures::avx512bw, "AVX-512 BW"},
    {&CpuFeatures::avx512vl, "AVX-512 VL"},
    {&CpuFeatures::avx512vbmi, "AVX-512 VBMI"},
    {&CpuFeatures::avx512vnni, "AVX-512 VNNI"},
    {&CpuFeatures::avx512bf16, "AVX-512 BF16"},
    {&CpuFeatures::avx512fp16, "AVX-512 FP16"},
};

#if defined(__x86_64__)
bool bit(unsigned word, int index) { return (word >> index & 1) != 0; }

// Which register files the operating system saves when it switches threads (XCR0).
unsigned saved_registers() {
  unsigned low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}
#endif

}  // namespace

// Bit positions: Intel 64 Software Developer's Manual, volume 2, instruction CPUID.
CpuFeatures cpu_features() noexcept {
  CpuFeatures f;
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return f;
  f.sse42 = bit(c, 20);
  f.popcnt = bit(c, 23);
  f.movbe = bit(c, 22);
  unsigned registers = bit(c, 27) ? saved_registers() : 0;
  bool ymm = (registers & 0x06) == 0x06;         // SSE and AVX state
  bool zmm = ymm && (registers & 0xe0) == 0xe0;  // and the three parts of AVX-512 state
  f.avx = ymm && bit(c, 28);
  f.fma = ymm && bit(c, 12);
  f.f16c = ymm && bit(c, 29);
  if (__get_cpuid(0x80000001, &a, &b, &c, &d)) f.lzcnt = bit(c, 5);
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return f;
  f.bmi1 = bit(b, 3);
  f.bmi2 = bit(b, 8);
  f.avx2 = ymm && bit(b, 5);
  f.avx512f = zmm && bit(b, 16);
  f.avx512dq = zmm && bit(b, 17);
  f.avx512cd = zmm && bit(b, 28);
  f.avx512bw = zmm && bit(b, 30);
  f.avx512vl = zmm && bit(b, 31);
  f.avx512vbmi = zmm && bit(c, 1);
  f.avx512vnni = zmm && bit(c, 11);
  f.avx512fp16 = zmm && bit(d, 23);
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) f.avx512bf16 = zmm && bit(a, 5);
#endif
  return f;
}

const char* missing_cpu_feature(const CpuFeatures& needed, const CpuFeatures& present) noexcept {
  for (const NamedFeature& feature : kNames) {
    if (needed.*feature.member && !(present.*feature.member)) return feature.name;
  }
  return nullptr;
}

const char* missing_cpu_feature() noexcept {
  return missing_cpu_feature(kCompiledFor, cpu_features());
}

}  // namespace tg
