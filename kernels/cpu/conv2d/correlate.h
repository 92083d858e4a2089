// The product behind conv2d and its gradient towards the input: a convolution as a matrix product
// whose left operand is never written down. Where channels lie next to each other, the window of
// one result is taps rows of w.taps * channels neighbouring values, and the windows of
// neighbouring results overlap: the micro-kernel reads them in place.
#pragma once
#include "tapegrad/core/view.h"
#include "tapegrad/kernels/conv2d_axis.h"

namespace tg::kernels::conv {

template <class T>
struct Correlation {
  Axis h, w;
  View source;     // [N, groups * source_channels, ..]
  MutView target;  // [N, groups * target_channels, ..]
  int64_t groups = 1, source_channels = 0, target_channels = 0;  // channels of one group
  // The kernel, [groups][target_channels][source_channels][kh][kw] by these strides.
  View kernel;
  int64_t kernel_group = 0, kernel_target = 0, kernel_source = 0, kernel_h = 0, kernel_w = 0;
  const T* bias = nullptr;  // [groups * target_channels]; null: none
};

template <class T>
void correlate(const Correlation<T>& correlation);

}  // namespace tg::kernels::conv
