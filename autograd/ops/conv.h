// Convolution of images.
#pragma once
#include "tapegrad/autograd/ops/size2.h"
#include "tapegrad/core/tensor.h"

namespace tg {

struct Conv2dOptions {
  Size2 stride = 1;
  Size2 padding = 0;  // zeros on both sides, at most 2^30
  Size2 dilation = 1;
  int64_t groups = 1;  // divides input and output channels
};
// x [N,Cin,H,W], weight [Cout,Cin/groups,kh,kw], bias [Cout] or undefined -> [N,Cout,H',W'] with
// H' = (H + 2 padding - dilation (kh - 1) - 1) / stride + 1. The result may be channels-last.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              const Conv2dOptions& options = {});

}  // namespace tg
