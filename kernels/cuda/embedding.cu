// Rows of a table by index, and the sum of gradients back into the table.
//
// Backward: positions are sorted by row on the host, which has to wait for the indices anyway; then
// a warp adds up each row of the table in the order of the positions. No atomic additions.
#include "tapegrad/kernels/embedding.h"

#include <vector>

#include "tapegrad/kernels/cuda/check_range.cuh"

namespace tg::kernels {
namespace {

// y [count, row_bytes / unit] in units of 1 or 16 bytes
template <class Unit>
__global__ void embedding_kernel(const int64_t* indices, int64_t count, int64_t row,
                                 const Unit* weight, Unit* y) {
  for (int64_t i = gpu::first_index(); i < count * row; i += gpu::index_step())
    y[i] = weight[indices[i / row] * row + i % row];
}

// dweight[r] = sum of dy[order[k]] for k in [start[r], start[r + 1])
template <class T>
__global__ void embedding_backward_kernel(const int64_t* start, const int64_t* order, int64_t rows,
                                          int64_t n, int64_t padding, const T* dy, T* dweight) {
  const int lane = int(threadIdx.x % 32);
  for (int64_t r = gpu::first_index() / 32; r < rows; r += gpu::index_step() / 32)
    for (int64_t c = lane; c < n; c += 32) {
      gpu::Computed<T> sum = 0;
      if (r != padding)
        for (int64_t k = start[r]; k < start[r + 1]; ++k) sum += gpu::widen(dy[order[k] * n + c]);
      dweight[r * n + c] = gpu::narrow<T>(sum);
    }
}

// Positions sorted by their index, equal ones in order: [rows + 1] starts, then the positions.
std::vector<int64_t> by_row(const std::vector<int64_t>& indices, int64_t rows) {
  std::vector<int64_t> sorted(size_t(rows) + 2 + indices.size(), 0);
  int64_t *start = sorted.data(), *order = start + rows + 1;
  for (int64_t i : indices) ++start[i + 1];
  for (int64_t r = 0; r < rows; ++r) start[r + 1] += start[r];
  std::vector<int64_t> next(start, start + rows);
  for (size_t i = 0; i < indices.size(); ++i) order[next[size_t(indices[i])]++] = int64_t(i);
  return sorted;
}

}  // namespace

void embedding(Cuda, View indices, View weight, MutView y) {
  const int64_t count = weight.size(0);
  const gpu::OutOfRange bad = gpu::find_outside(indices, {0, count});
  check<IndexError>(bad.position < 0, "index", bad.value, "at position", bad.position,
                    "is outside of [0,", count, ")");
  const int64_t bytes = weight.size(1) * int64_t(size_of(weight.dtype));
  if (y.numel == 0) return;
  auto run = [&]<class Unit>(std::type_identity<Unit>) {
    const int64_t row = bytes / int64_t(sizeof(Unit));
    gpu::start<embedding_kernel<Unit>>({gpu::blocks_for_each(indices.numel * row), gpu::kThreads},
                                       indices.as<int64_t>(), indices.numel, row, weight.as<Unit>(),
                                       y.as<Unit>());
  };
  if (bytes % 16 == 0 && gpu::aligned16(weight.data) && gpu::aligned16(y.data))
    run(std::type_identity<gpu::Words4>());
  else
    run(std::type_identity<uint8_t>());
}

void embedding_backward(Cuda, View indices, View dy, MutView dweight, int64_t padding) {
  const int64_t rows = dweight.size(0), n = dweight.size(1);
  if (dweight.numel == 0) return;
  const Device device = cuda::current_device();
  std::vector<int64_t> here(static_cast<size_t>(indices.numel));
  cuda::copy(kCpuDevice, here.data(), device, indices.data, here.size() * sizeof(int64_t));
  const std::vector<int64_t> sorted = by_row(here, rows);
  Workspace workspace(sorted.size() * sizeof(int64_t), device);
  int64_t* start = workspace.as<int64_t>();
  cuda::copy(device, start, kCpuDevice, sorted.data(), sorted.size() * sizeof(int64_t));
  visit_any_float(dy.dtype, [&]<class T>() {
    gpu::start<embedding_backward_kernel<T>>({gpu::blocks_for_each(rows * 32), gpu::kThreads},
                                             start, start + rows + 1, rows, n, padding, dy.as<T>(),
                                             dweight.as<T>());
  });
}

}  // namespace tg::kernels
