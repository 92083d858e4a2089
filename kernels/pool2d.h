// Pooling over windows of images, and the adjoints of pooling.
#pragma once
#include <algorithm>

#include "tapegrad/core/host_device.h"
#include "tapegrad/core/view.h"
#include "tapegrad/kernels/dispatch.h"

namespace tg::kernels {

// One axis of a pooling: which of `inputs` positions result o covers.
struct PoolAxis {
  int64_t inputs = 0, results = 0;
  int64_t kernel = 1, stride = 1, padding = 0;
  bool adaptive = false;  // windows that cut the inputs into `results` parts as evenly as possible

  TG_HD int64_t begin(int64_t o) const {
    return adaptive ? o * inputs / results : std::max<int64_t>(0, o * stride - padding);
  }
  TG_HD int64_t end(int64_t o) const {
    return adaptive ? ((o + 1) * inputs + results - 1) / results
                    : std::min(inputs, o * stride - padding + kernel);
  }
  // Positions the window would cover if padding counted. A window may also reach past the padding
  // (when sizes are rounded up): what lies there never counts.
  TG_HD int64_t padded_count(int64_t o) const {
    const int64_t first = o * stride - padding;
    return adaptive ? end(o) - begin(o) : std::min(first + kernel, inputs + padding) - first;
  }
  // The results whose windows cover position i: from the first to before the end.
  TG_HD int64_t first_result(int64_t i) const {
    if (adaptive) return i * results / inputs;
    const int64_t past = i + padding - kernel;
    return past < 0 ? 0 : past / stride + 1;
  }
  TG_HD int64_t end_result(int64_t i) const {
    const int64_t last = adaptive ? ((i + 1) * results - 1) / inputs : (i + padding) / stride;
    return std::min(results, last + 1);
  }
};

// What the sum over a window is divided by.
TG_HD inline int64_t size_of_window(const PoolAxis& h, const PoolAxis& w, int64_t oy, int64_t ox,
                                    bool count_padding) {
  return count_padding ? h.padded_count(oy) * w.padded_count(ox)
                       : (h.end(oy) - h.begin(oy)) * (w.end(ox) - w.begin(ox));
}

// fn.operator()<P>() for the type of the positions below.
template <class F>
void visit_position(DType t, F&& fn) {
  if (t == DType::u8) return fn.template operator()<uint8_t>();
  check<InternalError>(t == DType::i32, "positions of type", t);
  fn.template operator()<int32_t>();
}

// x, dx [N,C,H,W], y, dy [N,C,H',W'] of one float dtype; any strides, fastest where the channels of
// a pixel lie next to each other. Windows are walked row by row.

// position [N,C,H',W'] tells where in its window a maximum was found: row * kernel_w + column,
// counted from the first position of the window that is not padding. u8 if kernels have at most 256
// positions, else i32. NaN counts as the largest; of equal values the first is taken; padding is
// never taken.
void max_pool2d(Cpu, View x, MutView y, MutView position, const PoolAxis& h, const PoolAxis& w);
void max_pool2d(Cuda, View x, MutView y, MutView position, const PoolAxis& h, const PoolAxis& w);
// dx = dy at the positions, added up where windows overlap, zero elsewhere.
void max_pool2d_scatter(Cpu, View dy, View position, MutView dx, const PoolAxis& h,
                        const PoolAxis& w);
void max_pool2d_scatter(Cuda, View dy, View position, MutView dx, const PoolAxis& h,
                        const PoolAxis& w);
// y = x at the positions: the adjoint of the scatter.
void max_pool2d_gather(Cpu, View x, View position, MutView y, const PoolAxis& h, const PoolAxis& w);
void max_pool2d_gather(Cuda, View x, View position, MutView y, const PoolAxis& h,
                       const PoolAxis& w);

// The sum over a window divided by its size, with padding or (count_padding = false) without.
void avg_pool2d(Cpu, View x, MutView y, const PoolAxis& h, const PoolAxis& w, bool count_padding);
void avg_pool2d(Cuda, View x, MutView y, const PoolAxis& h, const PoolAxis& w, bool count_padding);
void avg_pool2d_backward(Cpu, View dy, MutView dx, const PoolAxis& h, const PoolAxis& w,
                         bool count_padding);
void avg_pool2d_backward(Cuda, View dy, MutView dx, const PoolAxis& h, const PoolAxis& w,
                         bool count_padding);

}  // namespace tg::kernels
