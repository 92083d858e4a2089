// A tile of a product: kTile x kTile sums of a block of 256 threads, 4 x 4 each, from tiles of the
// operands that the threads bring to shared memory together, kDepth steps of the sum at a time. An
// element is read kTile times less often than it is multiplied.
#pragma once
#include <cmath>
#include <type_traits>

#include "tapegrad/kernels/cuda/convert.cuh"

namespace tg::gpu {

inline constexpr int kTile = 64, kDepth = 16, kEach = 4, kTileThreads = 256;

// Floats are fused, in f32 for f16 and bf16. Integers multiply and add as unsigned ones, which may
// wrap around.
template <class T>
struct Arithmetic {
  using S = Computed<T>;
  __device__ static S load(T v) { return widen(v); }
  __device__ static S add_product(S a, S b, S sum) { return std::fma(a, b, sum); }
  __device__ static T store(S v) { return narrow<T>(v); }
};
template <class T>
requires std::is_integral_v<T>
struct Arithmetic<T> {
  using S = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  __device__ static S load(T v) { return S(v); }
  __device__ static S add_product(S a, S b, S sum) { return sum + a * b; }
  __device__ static T store(S v) { return T(v); }
};

// An operand, [kDepth, kTile]: one more, so that neighbours in a column lie in different banks.
template <class S>
using OperandTile = S[kDepth][kTile + 1];

template <class T>
struct TileSums {
  using S = typename Arithmetic<T>::S;
  S sum[kEach][kEach] = {};

  __device__ static int row(int i) { return int(threadIdx.x) / 16 + 16 * i; }
  __device__ static int column(int j) { return int(threadIdx.x) % 16 + 16 * j; }

  // Every result is one chain of multiply-adds, whatever the tile it falls into. depth may be less
  // than kDepth at the end of the sum: what lies past it is not added, since 0 * inf would be NaN.
  __device__ void add_products(const OperandTile<S>& a, const OperandTile<S>& b, int depth) {
    for (int k = 0; k < depth; ++k)
#pragma unroll
      for (int i = 0; i < kEach; ++i)
#pragma unroll
        for (int j = 0; j < kEach; ++j)
          sum[i][j] = Arithmetic<T>::add_product(a[k][row(i)], b[k][column(j)], sum[i][j]);
  }
  // f(row in the tile, column in the tile, sum) for those of this thread.
  template <class F>
  __device__ void for_each(F f) const {
#pragma unroll
    for (int i = 0; i < kEach; ++i)
#pragma unroll
      for (int j = 0; j < kEach; ++j) f(row(i), column(j), sum[i][j]);
  }
};

}  // namespace tg::gpu
