// A convolution, or its adjoint towards the input, as its kernels get it. Private to kernels/cuda.
#pragma once
#include "tapegrad/core/view.h"
#include "tapegrad/kernels/conv2d_axis.h"
#include "tapegrad/kernels/cuda/start.cuh"

namespace tg::gpu {

// An image [N, groups * channels, ..]: strides in elements.
struct ImageOperand {
  void* data;
  int64_t n, channel, y, x;
  int64_t channels;  // of one group
};

// target[n, g, j, oy, ox] = bias[g, j] + sum over ty, tx, c of
//     source[n, g, c, h.first + oy * h.step + ty * h.tap_step, (the same of w)] *
//     kernel[g, j, c, h.kernel_first + ty * h.kernel_step, (the same of w)]
struct Correlation {
  kernels::conv::Axis h, w;
  int64_t images, groups;
  ImageOperand source, target;
  const void* kernel;
  int64_t kernel_group, kernel_target, kernel_source, kernel_h, kernel_w;  // strides
  const void* bias;                                                        // null: none
  int64_t bias_step;
};
void correlate(const Correlation& correlation, DType dtype);
// f16 and bf16 on tensor cores. False where channels do not lie in pieces of 16 bytes.
bool tensor_core_correlate(const Correlation& correlation, DType dtype);

// dweight[g, j, c, ty, tx] = sum over n, oy, ox of dy[n, g, j, oy, ox] *
//     x[n, g, c, h.first + oy * h.step + ty * h.tap_step, (the same of w)]
void weight_gradient(const Correlation& of_x_to_dy, MutView dweight);

// ---- Places, for both

struct Result {
  int64_t n, y, x;
};
// Results are numbered row by row, image by image.
__device__ inline Result result_of(const Correlation& p, int64_t i) {
  const int64_t line = quotient(i, p.w.results), n = quotient(line, p.h.results);
  return {n, line - n * p.h.results, i - line * p.w.results};
}

// What one result of a group sees of the source: where it begins, which may be padding.
struct Window {
  int64_t place, y, x;
};
__device__ inline Window window_of(const Correlation& p, int64_t group, const Result& o) {
  const int64_t y = p.h.first + o.y * p.h.step, x = p.w.first + o.x * p.w.step;
  return {o.n * p.source.n + group * p.source.channels * p.source.channel + y * p.source.y +
              x * p.source.x,
          y, x};
}

// An entry of every window, seen from where that begins. Entries are numbered with channels
// innermost.
struct Entry {
  int64_t place, y, x;
  int64_t channel, ty, tx;  // which one it is
};
__device__ inline Entry entry_of(const Correlation& p, int64_t k) {
  const int64_t tap = quotient(k, p.source.channels), channel = k - tap * p.source.channels;
  const int64_t ty = quotient(tap, p.w.taps), tx = tap - ty * p.w.taps;
  const int64_t y = ty * p.h.tap_step, x = tx * p.w.tap_step;
  return {channel * p.source.channel + y * p.source.y + x * p.source.x, y, x, channel, ty, tx};
}
__device__ inline int64_t place_in_kernel(const Correlation& p, const Entry& e) {
  return e.channel * p.kernel_source + (p.h.kernel_first + e.ty * p.h.kernel_step) * p.kernel_h +
         (p.w.kernel_first + e.tx * p.w.kernel_step) * p.kernel_w;
}
// Where a result's first channel lies.
__device__ inline int64_t place_in_target(const Correlation& p, const Result& o) {
  return o.n * p.target.n + (p.h.target_first + o.y * p.h.target_step) * p.target.y +
         (p.w.target_first + o.x * p.w.target_step) * p.target.x;
}
// False where the entry is padding.
__device__ inline bool has(const Correlation& p, const Window& window, const Entry& e) {
  return uint64_t(window.y + e.y) < uint64_t(p.h.sources) &&
         uint64_t(window.x + e.x) < uint64_t(p.w.sources);
}

}  // namespace tg::gpu
