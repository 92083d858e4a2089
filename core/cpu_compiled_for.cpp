// Compiled with the flags of the rest, so that the compiler's own macros say what it may use. It
// holds constants only: no instruction of this file runs before cpu_features.cpp has looked at the
// machine.
#include "tapegrad/core/cpu_features.h"

namespace tg {

constexpr CpuFeatures kCompiledFor = {
#ifdef __SSE4_2__
    .sse42 = true,
#endif
#ifdef __POPCNT__
    .popcnt = true,
#endif
#ifdef __LZCNT__
    .lzcnt = true,
#endif
#ifdef __BMI__
    .bmi1 = true,
#endif
#ifdef __BMI2__
    .bmi2 = true,
#endif
#ifdef __MOVBE__
    .movbe = true,
#endif
#ifdef __AVX__
    .avx = true,
#endif
#ifdef __F16C__
    .f16c = true,
#endif
#ifdef __FMA__
    .fma = true,
#endif
#ifdef __AVX2__
    .avx2 = true,
#endif
#ifdef __AVX512F__
    .avx512f = true,
#endif
#ifdef __AVX512DQ__
    .avx512dq = true,
#endif
#ifdef __AVX512CD__
    .avx512cd = true,
#endif
#ifdef __AVX512BW__
    .avx512bw = true,
#endif
#ifdef __AVX512VL__
    .avx512vl = true,
#endif
#ifdef __AVX512VBMI__
    .avx512vbmi = true,
#endif
#ifdef __AVX512VNNI__
    .avx512vnni = true,
#endif
#ifdef __AVX512BF16__
    .avx512bf16 = true,
#endif
#ifdef __AVX512FP16__
    .avx512fp16 = true,
#endif
};

}  // namespace tg
