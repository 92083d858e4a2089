// Dropout: y[i] = x[i] / (1 - probability), or 0. Who goes depends on the random state and on i in
// logical order alone (kernels/dropout_draw.h has the same rule), so the backward is the same
// kernel on the gradient, with the CPU's choice. A thread takes the four elements of one random
// block.
#include "tapegrad/kernels/dropout.h"

#include "tapegrad/kernels/cuda/elementwise.cuh"
#include "tapegrad/kernels/dropout_draw.h"

namespace tg::kernels {
namespace {

template <class T>
__global__ void dropout_kernel(gpu::Strided<1> in_order, RandomState state, uint32_t bound,
                               double factor, const char* x, char* y) {
  using S = gpu::Computed<T>;
  for (int64_t b = gpu::first_index(); b < (in_order.numel + 3) / 4; b += gpu::index_step()) {
    const RandomBlock block = random_block(state, uint64_t(b));
    for (int k = 0; k < 4; ++k) {
      const int64_t i = 4 * b + k;
      if (i >= in_order.numel) break;
      int64_t place[2];
      gpu::find_places(in_order, i, place);
      const S value = gpu::widen(*reinterpret_cast<const T*>(x + place[1]));
      const bool stays = block.word[k] >> 8 >= bound;
      *reinterpret_cast<T*>(y + place[0]) = gpu::narrow<T>(stays ? value * S(factor) : S(0));
    }
  }
}

}  // namespace

void dropout(Cuda, View x, MutView y, Dropout dropout) {
  if (y.numel == 0) return;
  const DropoutDraw draw(dropout);
  visit_any_float(x.dtype, [&]<class T>() {
    gpu::start<dropout_kernel<T>>({gpu::blocks_for_each(y.numel / 4 + 1), gpu::kThreads},
                                  gpu::in_logical_order(y, x), dropout.state, draw.bound(),
                                  draw.factor(), x.as<char>(), y.as<char>());
  });
}

}  // namespace tg::kernels
