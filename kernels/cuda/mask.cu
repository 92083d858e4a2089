// Truth values that choose elements.
#include "tapegrad/kernels/mask.h"

#include <numeric>
#include <vector>

#include "tapegrad/kernels/copy.h"
#include "tapegrad/kernels/cuda/check_range.cuh"

namespace tg::kernels {
namespace {

struct Masked {
  template <class Bits>
  __device__ Bits operator()(Bits x, bool mask, Bits value) const {
    return mask ? value : x;
  }
};

// y = x where its column keeps to the side of the diagonal, else 0; one element a thread.
template <class Bits>
__global__ void triangle_kernel(gpu::Strided<1> loops, int64_t rows, int64_t columns,
                                int64_t diagonal, bool upper, const char* x, char* y) {
  for (int64_t i = gpu::first_index(); i < loops.numel; i += gpu::index_step()) {
    const int64_t column = i % columns, row = i / columns % rows;
    int64_t offset[2];
    gpu::find_places(loops, i, offset);
    const bool keeps = upper ? column - row >= diagonal : column - row <= diagonal;
    *reinterpret_cast<Bits*>(y + offset[0]) =
        keeps ? *reinterpret_cast<const Bits*>(x + offset[1]) : Bits(0);
  }
}

constexpr int64_t kPart = 1024;  // elements that one thread counts and writes

__global__ void count_parts_kernel(const char* x, DType t, int64_t numel, int64_t* counts) {
  const int64_t bytes = int64_t(size_of(t)), parts = (numel + kPart - 1) / kPart;
  for (int64_t p = gpu::first_index(); p < parts; p += gpu::index_step()) {
    int64_t count = 0;
    for (int64_t i = p * kPart; i < min((p + 1) * kPart, numel); ++i)
      count += gpu::load_as<bool>(t, x + i * bytes);
    counts[p] = count;
  }
}

// y [.., rank]: the coordinates of what is not zero, part p from row starts[p] on
__global__ void write_coordinates_kernel(gpu::Strided<0> shape, const char* x, DType t,
                                         const int64_t* starts, int64_t* y) {
  const int64_t bytes = int64_t(size_of(t)), parts = (shape.numel + kPart - 1) / kPart;
  for (int64_t p = gpu::first_index(); p < parts; p += gpu::index_step()) {
    int64_t* out = y + starts[p] * shape.rank;
    for (int64_t i = p * kPart; i < min((p + 1) * kPart, shape.numel); ++i) {
      if (!gpu::load_as<bool>(t, x + i * bytes)) continue;
      int64_t rest = i;
      for (int d = shape.rank - 1; d >= 0; --d) {
        out[d] = rest % shape.size[d];
        rest /= shape.size[d];
      }
      out += shape.rank;
    }
  }
}

// How many of each part are not zero, on the host.
std::vector<int64_t> count_parts(View x) {
  const int64_t parts = (x.numel + kPart - 1) / kPart;
  std::vector<int64_t> counts(static_cast<size_t>(parts));
  if (parts == 0) return counts;
  Workspace workspace(counts.size() * sizeof(int64_t), cuda::current_device());
  gpu::start<count_parts_kernel>({gpu::blocks_for_each(parts), gpu::kThreads}, x.as<char>(),
                                 x.dtype, x.numel, workspace.as<int64_t>());
  cuda::copy(kCpuDevice, counts.data(), cuda::current_device(), workspace.as<int64_t>(),
             counts.size() * sizeof(int64_t));
  return counts;
}

}  // namespace

int64_t count_nonzero(Cuda, View x) {
  const std::vector<int64_t> counts = count_parts(x);
  return std::accumulate(counts.begin(), counts.end(), int64_t(0));
}

void nonzero(Cuda, View x, MutView y) {
  if (y.numel == 0) return;
  std::vector<int64_t> starts = count_parts(x);
  std::exclusive_scan(starts.begin(), starts.end(), starts.begin(), int64_t(0));
  const Device device = cuda::current_device();
  Workspace workspace(starts.size() * sizeof(int64_t), device);
  cuda::copy(device, workspace.as<int64_t>(), kCpuDevice, starts.data(),
             starts.size() * sizeof(int64_t));
  gpu::start<write_coordinates_kernel>(
      {gpu::blocks_for_each(int64_t(starts.size())), gpu::kThreads}, gpu::in_logical_order(x),
      x.as<char>(), x.dtype, workspace.as<int64_t>(), y.as<int64_t>());
}

void triangle(Cuda, View x, MutView y, int64_t diagonal, bool upper) {
  if (y.numel == 0) return;
  visit_bytes(y.dtype, [&]<class Bits>() {
    gpu::start<triangle_kernel<Bits>>(
        {gpu::blocks_for_each(y.numel), gpu::kThreads}, gpu::in_logical_order(y, x),
        y.size(y.rank() - 2), y.size(y.rank() - 1), diagonal, upper, x.as<char>(), y.as<char>());
  });
}

void masked_fill(Cuda, View x, View mask, Scalar value, MutView y) {
  if (y.numel == 0) return;
  const auto bits = int64_t(bits_of(value, y.dtype));
  visit_bytes(y.dtype, [&]<class Bits>() {
    gpu::strided<Masked, Bits, Bits, bool, Bits>({}, {x, mask, Scalar(bits)}, y);
  });
}

}  // namespace tg::kernels
