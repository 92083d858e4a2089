// The product of matrices of any strides and dtype, a tile of c a block (kernels/cuda/tile.cuh).
#include "tapegrad/kernels/cuda/matmul/product.h"
#include "tapegrad/kernels/cuda/tile.cuh"
#include "tapegrad/kernels/dispatch.h"

namespace tg::gpu {
namespace {

template <class T>
__global__ void __launch_bounds__(kTileThreads) tiled_kernel(Product p) {
  using A = Arithmetic<T>;
  using S = typename A::S;
  __shared__ OperandTile<S> a_tile, b_tile;

  int64_t place[4];
  find_places(p.batch, blockIdx.z, place);
  const T* a = reinterpret_cast<const T*>(static_cast<const char*>(p.a.data) + place[1]);
  const T* b = reinterpret_cast<const T*>(static_cast<const char*>(p.b.data) + place[2]);
  T* c = reinterpret_cast<T*>(static_cast<char*>(p.c) + place[0]);
  const int64_t row0 = int64_t(blockIdx.y) * kTile, column0 = int64_t(blockIdx.x) * kTile;

  TileSums<T> sums;
  for (int64_t k0 = 0; k0 < p.k; k0 += kDepth) {
    for (int i = int(threadIdx.x); i < kTile * kDepth; i += kTileThreads) {
      const int64_t row = row0 + i / kDepth, ka = k0 + i % kDepth;
      const int64_t kb = k0 + i / kTile, column = column0 + i % kTile;
      a_tile[i % kDepth][i / kDepth] =
          row < p.m && ka < p.k ? A::load(a[row * p.a.row + ka * p.a.column]) : S(0);
      b_tile[i / kTile][i % kTile] =
          kb < p.k && column < p.n ? A::load(b[kb * p.b.row + column * p.b.column]) : S(0);
    }
    __syncthreads();
    sums.add_products(a_tile, b_tile, int(min(int64_t(kDepth), p.k - k0)));
    __syncthreads();
  }

  const T* addend =
      p.addend.data ? reinterpret_cast<const T*>(static_cast<const char*>(p.addend.data) + place[3])
                    : nullptr;
  sums.for_each([&](int tile_row, int tile_column, S result) {
    const int64_t row = row0 + tile_row, column = column0 + tile_column;
    if (row >= p.m || column >= p.n) return;
    if (addend) result += A::load(addend[row * p.addend.row + column * p.addend.column]);
    c[row * p.n + column] = A::store(result);
  });
}

}  // namespace

void tiled_product(const Product& p, DType dtype) {
  // Grids end at 65535 in their second and third dimension.
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
