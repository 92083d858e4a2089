// One axis of a convolution, forward or backward, in the one form that the kernels understand.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>

namespace tg::kernels::conv {

// result[o] = sum over t < taps of source[first + o * step + t * tap_step] * kernel[...]
//
// Sources outside of [0, sources) count as zeros. Result o is stored at target_first +
// o * target_step, and tap t is weighted by entry kernel_first + t * kernel_step of the kernel.
struct Axis {
  int64_t sources = 0, results = 0, taps = 0;
  int64_t first = 0, step = 1, tap_step = 1;
  int64_t target_first = 0, target_step = 1;
  int64_t kernel_first = 0, kernel_step = 1;

  // How many neighbouring sources `count` neighbouring results look at.
  int64_t span(int64_t count) const {
    return (count - 1) * step + std::max<int64_t>(taps - 1, 0) * tap_step + 1;
  }
  // The first and the end of the taps of result o that meet a source and not padding.
  int64_t first_tap(int64_t o) const {
    const int64_t missing = -(first + o * step);
    return missing <= 0 ? 0 : std::min(taps, (missing + tap_step - 1) / tap_step);
  }
  int64_t end_tap(int64_t o) const {
    const int64_t room = sources - 1 - (first + o * step);
    return room < 0 ? 0 : std::min(taps, room / tap_step + 1);
  }
};

inline Axis forward_axis(int64_t sources, int64_t results, int64_t taps, int64_t stride,
                         int64_t padding, int64_t dilation) {
  Axis axis;
  axis.sources = sources;
  axis.results = results;
  axis.taps = taps;
  axis.first = -padding;
  axis.step = stride;
  axis.tap_step = dilation;
  return axis;
}

// The axis of the gradient towards the input, of every stride-th input beginning at `phase`: those
// inputs meet the same taps, and for them the sum over taps is a convolution of dy with step 1. So
// a strided convolution is undone without multiplying by the zeros between its results.
//
// Input i = phase + stride * m meets tap k where i + padding - k * dilation = stride * o.
inline Axis backward_axis(int64_t inputs, int64_t outputs, int64_t taps, int64_t stride,
                          int64_t padding, int64_t dilation, int64_t phase) {
  const int64_t common = std::gcd(dilation, stride);
  const int64_t period = stride / common;  // taps of one phase are this far apart
  const auto fits = [&](int64_t k) { return (phase + padding - k * dilation) % stride == 0; };
  Axis axis;
  axis.sources = outputs;
  axis.results = phase < inputs ? (inputs - phase + stride - 1) / stride : 0;
  axis.target_first = phase;
  axis.target_step = stride;
  axis.tap_step = dilation / common;
  axis.kernel_step = -period;  // larger taps meet earlier outputs
  int64_t smallest = 0;
  while (smallest < std::min(period, taps) && !fits(smallest)) ++smallest;
  if (smallest >= std::min(period, taps)) return axis;  // no tap: the gradient is zero
  axis.taps = (taps - 1 - smallest) / period + 1;
  axis.kernel_first = smallest + (axis.taps - 1) * period;
  axis.first = (phase + padding - axis.kernel_first * dilation) / stride;  // without remainder
  return axis;
}

}  // namespace tg::kernels::conv
