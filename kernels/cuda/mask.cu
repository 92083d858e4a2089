// Truth values that choose elements.
#include "tapegrad/kernels/mask.h"

#include "tapegrad/kernels/copy.h"
#include "tapegrad/kernels/cuda/elementwise.cuh"

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

}  // namespace

void triangle(Cuda, View x, MutView y, int64_t diagonal, bool upper) {
  if (y.numel == 0) return;
  // In logical order, which rows and columns are counted in.
  gpu::Strided<1> loops{y.rank(), y.numel, {}, {}};
  const int64_t bytes = int64_t(size_of(y.dtype));
  for (int d = 0; d < y.rank(); ++d) {
    loops.size[d] = y.size(d);
    loops.step[0][d] = y.stride(d) * bytes;
    loops.step[1][d] = x.stride(d) * bytes;
  }
  visit_bytes(y.dtype, [&]<class Bits>() {
    gpu::start<triangle_kernel<Bits>>({gpu::blocks_for_each(y.numel), gpu::kThreads}, loops,
                                      y.size(y.rank() - 2), y.size(y.rank() - 1), diagonal, upper,
                                      x.as<char>(), y.as<char>());
  });
}

void masked_fill(Cuda, View x, View mask, Scalar value, MutView y) {
  if (y.numel == 0) return;
  const Shape one;
  uint64_t bits = 0;
  fill(Cpu{}, MutView{{&bits, y.dtype, &one, &one, 1}}, value);
  visit_bytes(y.dtype, [&]<class Bits>() {
    gpu::strided<Masked, Bits, Bits, bool, Bits>({}, {x, mask, Scalar(int64_t(bits))}, y);
  });
}

}  // namespace tg::kernels
