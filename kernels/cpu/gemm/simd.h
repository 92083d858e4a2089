// The few register operations that the matrix product is written in, one struct for each
// instruction set. Simd<T> is the widest that this build may use (TAPEGRAD_ARCH).
//
//   kLanes                     values in one register
//   kTileRows                  rows of the register tile: rows x 2 registers of sums, and two
//                              registers of B and one of A beside them, fill the register file
//   broadcast(p)               all lanes *p
//   multiply_add(a, b, c)      a * b + c, rounded once where the CPU can
//   first(n)                   a mask of the first n lanes, 1 <= n <= kLanes; masked loads give 0
//                              elsewhere and touch nothing there, masked stores neither
//   transpose(from, .., to, ..)  a kLanes x kLanes block, rows and columns exchanged
#pragma once
#if defined(__AVX512F__)
#include "tapegrad/kernels/cpu/gemm/simd_avx512.h"
#elif defined(__AVX2__) && defined(__FMA__)
#include "tapegrad/kernels/cpu/gemm/simd_avx2.h"
#endif
#include <type_traits>

#include "tapegrad/kernels/cpu/gemm/simd_portable.h"

namespace tg::kernels::gemm {

#if defined(__AVX512F__)
template <class T>
using Simd = std::conditional_t<std::is_same_v<T, float>, FloatAvx512, DoubleAvx512>;
#elif defined(__AVX2__) && defined(__FMA__)
template <class T>
using Simd = std::conditional_t<std::is_same_v<T, float>, FloatAvx2, DoubleAvx2>;
#else
template <class T>
using Simd = Portable<T>;
#endif

// The largest tile of C that one call of the micro-kernel computes.
template <class T>
constexpr int kTileRows = Simd<T>::kTileRows;
template <class T>
constexpr int kTileColumns = 2 * Simd<T>::kLanes;

}  // namespace tg::kernels::gemm
