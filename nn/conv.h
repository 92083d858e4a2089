// Convolution layers.
#pragma once
#include "tapegrad/autograd/ops/size2.h"
#include "tapegrad/nn/module.h"

namespace tg::nn {

struct Conv2dOptions {
  Size2 stride = 1;
  Size2 padding = 0;  // zeros on both sides
  Size2 dilation = 1;
  int64_t groups = 1;  // divides input and output channels
  bool bias = true;
};

// x [N,Cin,H,W] -> [N,Cout,H',W'] (autograd/ops/conv.h has the formula). Weight
// [Cout,Cin/groups,kh,kw] and bias [Cout] start uniform in +- 1/sqrt(Cin/groups kh kw). ValueError
// for sizes below 1, a negative padding, or groups that do not divide the channels.
struct Conv2d : Module {
  int64_t in_channels, out_channels;
  Size2 kernel_size;
  Conv2dOptions options;
  Parameter weight, bias;
  Conv2d(int64_t in_channels, int64_t out_channels, Size2 kernel_size, Conv2dOptions options = {});
  TG_MODULE(weight, bias)
  Tensor forward(const Tensor& x);
  void reset_parameters();
  Conv2d remake() const { return {in_channels, out_channels, kernel_size, options}; }
  int64_t flops(const std::vector<Tensor>& inputs, const Tensor& output) const override;
};

}  // namespace tg::nn
