// Dropout: y[i] = x[i] / (1 - probability), or 0. Who goes depends on the random state and on i in
// logical order alone (kernels/dropout_draw.h has the same rule), so the backward is the same
// kernel on the gradient, with the CPU's choice. A thread takes the four elements of one random
// block.
#include "tapegrad/kernels/dropout.h"

#include "tapegrad/kernels/cuda/convert.cuh"
#include "tapegrad/kernels/cuda/start.cuh"
#include "tapegrad/kernels/dispatch.h"
#include "tapegrad/kernels/dropout_draw.h"

namespace tg::kernels {
namespace {

// Sizes and strides in logical order, which the draw counts in.
struct Logical {
  int rank;
  int64_t size[kMaxRank], x_stride[kMaxRank], y_stride[kMaxRank];
};

template <class T>
__global__ void dropout_kernel(Logical in_order, RandomState state, uint32_t bound, double factor,
                               const T* x, T* y, int64_t numel) {
  using S = gpu::Computed<T>;
  for (int64_t b = gpu::first_index(); b < (numel + 3) / 4; b += gpu::index_step()) {
    const RandomBlock block = random_block(state, uint64_t(b));
    for (int k = 0; k < 4; ++k) {
      const int64_t i = 4 * b + k;
      if (i >= numel) break;
      int64_t rest = i, from = 0, to = 0;
      for (int d = in_order.rank - 1; d >= 0; --d) {
        const int64_t at = rest % in_order.size[d];
        rest /= in_order.size[d];
        from += at * in_order.x_stride[d];
        to += at * in_order.y_stride[d];
      }
      const bool stays = block.word[k] >> 8 >= bound;
      y[to] = gpu::narrow<T>(stays ? S(gpu::widen(x[from]) * S(factor)) : S(0));
    }
  }
}

template <class F>
void visit_floats(DType t, F&& fn) {
  if (t == DType::f16) return fn.template operator()<Half>();
  if (t == DType::bf16) return fn.template operator()<BFloat16>();
  visit_float(t, fn);
}

}  // namespace

void dropout(Cuda, View x, MutView y, Dropout dropout) {
  if (y.numel == 0) return;
  const DropoutDraw draw(dropout);
  Logical in_order{y.rank(), {}, {}, {}};
  for (int d = 0; d < y.rank(); ++d) {
    in_order.size[d] = y.size(d);
    in_order.x_stride[d] = x.stride(d);
    in_order.y_stride[d] = y.stride(d);
  }
  visit_floats(x.dtype, [&]<class T>() {
    gpu::start<dropout_kernel<T>>({gpu::blocks_for_each(y.numel / 4 + 1), gpu::kThreads}, in_order,
                                  dropout.state, draw.bound(), draw.factor(), x.as<T>(), y.as<T>(),
                                  y.numel);
  });
}

}  // namespace tg::kernels
