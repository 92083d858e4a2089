// The product of matrices of any strides and dtype: a block computes a tile of c, step by step over
// k, from tiles of a and b that its threads bring to shared memory together.
//
//   a tile [kTile, kDepth], b tile [kDepth, kTile], 256 threads of 4 x 4 results each
//
// An element is read kTile times less often than it is multiplied. Every result is one chain of
// multiply-adds over k, whatever the tile it falls into: f32 (also for f16 and bf16) and f64 fused,
// integers wrap around.
#include <cmath>
#include <type_traits>

#include "tapegrad/kernels/cuda/matmul/product.h"
#include "tapegrad/kernels/dispatch.h"

namespace tg::gpu {
namespace {

constexpr int kTile = 64, kDepth = 16, kEach = 4;  // kEach: rows and columns of a thread

// Integers multiply and add as unsigned ones, which may wrap around.
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

template <class T>
__global__ void __launch_bounds__(256) tiled_kernel(Product p) {
  using A = Arithmetic<T>;
  using S = typename A::S;
  __shared__ S a_tile[kDepth][kTile + 1];  // one more: neighbours in a column in different banks
  __shared__ S b_tile[kDepth][kTile + 1];

  int64_t place[4];
  find_places(p.batch, blockIdx.z, place);
  const T* a = reinterpret_cast<const T*>(static_cast<const char*>(p.a.data) + place[1]);
  const T* b = reinterpret_cast<const T*>(static_cast<const char*>(p.b.data) + place[2]);
  T* c = reinterpret_cast<T*>(static_cast<char*>(p.c) + place[0]);
  const int64_t row0 = int64_t(blockIdx.y) * kTile, column0 = int64_t(blockIdx.x) * kTile;
  const int thread = int(threadIdx.x), my_row = thread / 16, my_column = thread % 16;

  S sum[kEach][kEach] = {};
  for (int64_t k0 = 0; k0 < p.k; k0 += kDepth) {
    for (int i = thread; i < kTile * kDepth; i += 256) {
      const int64_t row = row0 + i / kDepth, ka = k0 + i % kDepth;
      const int64_t kb = k0 + i / kTile, column = column0 + i % kTile;
      a_tile[i % kDepth][i / kDepth] =
          row < p.m && ka < p.k ? A::load(a[row * p.a.row + ka * p.a.column]) : S(0);
      b_tile[i / kTile][i % kTile] =
          kb < p.k && column < p.n ? A::load(b[kb * p.b.row + column * p.b.column]) : S(0);
    }
    __syncthreads();
    // What lies past the end of k is not added: 0 * inf would be NaN.
    const int depth = int(min(int64_t(kDepth), p.k - k0));
    for (int k = 0; k < depth; ++k)
#pragma unroll
      for (int i = 0; i < kEach; ++i)
#pragma unroll
        for (int j = 0; j < kEach; ++j)
          sum[i][j] =
              A::add_product(a_tile[k][my_row + 16 * i], b_tile[k][my_column + 16 * j], sum[i][j]);
    __syncthreads();
  }

  const T* addend =
      p.addend.data ? reinterpret_cast<const T*>(static_cast<const char*>(p.addend.data) + place[3])
                    : nullptr;
  for (int i = 0; i < kEach; ++i)
    for (int j = 0; j < kEach; ++j) {
      const int64_t row = row0 + my_row + 16 * i, column = column0 + my_column + 16 * j;
      if (row >= p.m || column >= p.n) continue;
      S result = sum[i][j];
      if (addend) result += A::load(addend[row * p.addend.row + column * p.addend.column]);
      c[row * p.n + column] = A::store(result);
    }
}

}  // namespace

void tiled_product(const Product& p, DType dtype) {
  // Grids end at 65535 in their second and third dimension; longer ones go in parts.
  constexpr int64_t kMost = 65535;
  const int64_t batches = p.batch.numel, tiles = (p.m + kTile - 1) / kTile;
  check<ShapeError>(batches <= kMost && tiles <= kMost,
                    "a product with more than 65535 matrices or 4 million rows; split it");
  const dim3 grid(unsigned((p.n + kTile - 1) / kTile), unsigned(tiles), unsigned(batches));
  visit_all(dtype, [&]<class T>() {
    if constexpr (std::is_same_v<T, bool>)
      fail<DTypeError>("works on numbers, got bool");
    else
      start<tiled_kernel<T>>({grid, 256}, p);
  });
}

}  // namespace tg::gpu
