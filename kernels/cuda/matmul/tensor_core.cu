// The product of 16-bit matrices on tensor cores, a tile of c a block
// (kernels/cuda/tensor_tile.cuh).
#include "tapegrad/kernels/cuda/matmul/product.h"
#include "tapegrad/kernels/cuda/tensor_tile.cuh"

namespace tg::gpu {
namespace {

template <class T, bool kAlongKInA, bool kAlongKInB>
__global__ void __launch_bounds__(tensor::kTileThreads, 2) tensor_core_kernel(Product p) {
  const int m = int(p.m), n = int(p.n), k = int(p.k), thread = int(threadIdx.x);
  const tensor::TileOrigin tile = tensor::tile_of_block(m, n);
  int64_t place[4];
  find_places(p.batch, blockIdx.z, place);
  const T* a = reinterpret_cast<const T*>(static_cast<const char*>(p.a.data) + place[1]);
  const T* b = reinterpret_cast<const T*>(static_cast<const char*>(p.b.data) + place[2]);
  const char* bias = static_cast<const char*>(p.addend.data);

  tensor::Copier<T, kAlongKInA> copy_a(a, int(kAlongKInA ? p.a.row : p.a.column), tile.row, m, k,
                                       thread);
  tensor::Copier<T, kAlongKInB> copy_b(b, int(kAlongKInB ? p.b.column : p.b.row), tile.column, n, k,
                                       thread);
  tensor::Sums sum;
  tensor::start_sums(sum, reinterpret_cast<const T*>(bias ? bias + place[3] : nullptr),
                     p.addend.column, tile.column, n);
  tensor::add_products<T, kAlongKInA, kAlongKInB>(copy_a, copy_b,
                                                  (k + tensor::kDepth - 1) / tensor::kDepth, sum);

  // Found again rather than kept in registers all along: there is none to spare in the loop.
  find_places(p.batch, blockIdx.z, place);
  T* c = reinterpret_cast<T*>(static_cast<char*>(p.c) + place[0]);
  const bool aligned = n % 8 == 0 && reinterpret_cast<uintptr_t>(c) % 16 == 0;
  tensor::write_sums<T>(sum, aligned, tile, n,
                        [&](int row) { return row < m ? c + int64_t(row) * n : nullptr; });
}

// One dimension without gaps, the other in steps of 16 bytes. `rows` and `columns` are sizes: a
// dimension of size 1 has no step.
bool fits(const Matrix& matrix, bool along_rows) {
  const int64_t step = along_rows ? matrix.row : matrix.column;
  const int64_t other = along_rows ? matrix.column : matrix.row;
  return step == 1 && other >= 1 && other < tensor::kMostPitch && other % 8 == 0 &&
         aligned16(matrix.data);
}

template <class T, bool kAlongKInA, bool kAlongKInB>
void run(const Product& p) {
  const dim3 grid(unsigned(tensor::tiles_of(p.m, p.n)), 1, unsigned(p.batch.numel));
  start<tensor_core_kernel<T, kAlongKInA, kAlongKInB>>(
      {grid, tensor::kTileThreads, tensor::kShared}, p);
}

template <class T>
void choose(const Product& p, bool a_along_k, bool b_along_k) {
  if (a_along_k) return b_along_k ? run<T, true, true>(p) : run<T, true, false>(p);
  return b_along_k ? run<T, false, true>(p) : run<T, false, false>(p);
}

}  // namespace

bool tensor_core_product(const Product& p, DType dtype) {
  constexpr int64_t kMost = tensor::kMostSize;
  if (dtype != DType::f16 && dtype != DType::bf16) return false;
  if (p.m > kMost || p.n > kMost || p.k > kMost || p.batch.numel > 65535) return false;
  for (int d = 0; d < p.batch.rank; ++d)
    for (int operand : {1, 2})
      if (p.batch.step[operand][d] % 16 != 0 && p.batch.numel > 1) return false;
  // A whole matrix to add would need more registers than there are.
  if (p.addend.data && p.addend.row != 0) return false;
  const bool a_along_k = fits(p.a, false), b_along_k = fits(p.b, true);
  if (!a_along_k && !fits(p.a, true)) return false;
  if (!b_along_k && !fits(p.b, false)) return false;
  if (dtype == DType::f16)
    choose<Half>(p, a_along_k, b_along_k);
  else
    choose<BFloat16>(p, a_along_k, b_along_k);
  return true;
}

}  // namespace tg::gpu
