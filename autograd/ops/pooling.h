// Pooling over windows of an image [N,C,H,W].
#pragma once
#include "tapegrad/autograd/ops/size2.h"
#include "tapegrad/core/tensor.h"

namespace tg {

struct Pool2dOptions {
  Size2 stride = 0;   // 0: the kernel size
  Size2 padding = 0;  // at most half the kernel size
  bool ceil_mode = false;
  bool count_include_pad = true;  // average pooling only
};
// Kernels are at most 2^31 - 1 high and wide. Padding counts as -inf; NaN wins; the gradient goes
// to the first maximum of the window.
Tensor max_pool2d(const Tensor& x, Size2 kernel, const Pool2dOptions& options = {});
Tensor avg_pool2d(const Tensor& x, Size2 kernel, const Pool2dOptions& options = {});
// Windows such that the output is [N,C,output.h,output.w].
Tensor adaptive_avg_pool2d(const Tensor& x, Size2 output);

}  // namespace tg
