#include "tapegrad/nn/conv.h"

#include <cmath>

#include "tapegrad/autograd/ops/conv.h"
#include "tapegrad/nn/init.h"

namespace tg::nn {

Conv2d::Conv2d(int64_t in, int64_t out, Size2 kernel, Conv2dOptions o)
    : in_channels(in), out_channels(out), kernel_size(kernel), options(o) {
  check<ValueError>(in > 0 && out > 0, "Conv2d: channels must be at least 1, got", in, "in and",
                    out, "out");
  check<ValueError>(kernel.h > 0 && kernel.w > 0, "Conv2d: the kernel size must be at least 1, got",
                    kernel);
  check<ValueError>(o.stride.h > 0 && o.stride.w > 0 && o.dilation.h > 0 && o.dilation.w > 0,
                    "Conv2d: stride and dilation must be at least 1, got stride", o.stride,
                    "dilation", o.dilation);
  check<ValueError>(o.padding.h >= 0 && o.padding.w >= 0,
                    "Conv2d: padding must not be negative, got", o.padding);
  check<ValueError>(o.groups > 0 && in % o.groups == 0 && out % o.groups == 0,
                    "Conv2d: groups must divide the channels, got", o.groups, "groups,", in,
                    "channels in and", out, "out");
  weight = empty({out, in / o.groups, kernel.h, kernel.w});
  if (o.bias) bias = empty({out});
  reset_parameters();
}

void Conv2d::reset_parameters() {
  init::kaiming_uniform_(weight, {.a = std::sqrt(5.0)});
  double bound = 1 / std::sqrt(double(init::fans(weight).first));
  if (bias.defined()) init::uniform_(bias, -bound, bound);
}

Tensor Conv2d::forward(const Tensor& x) {
  return conv2d(x, weight, bias,
                {.stride = options.stride,
                 .padding = options.padding,
                 .dilation = options.dilation,
                 .groups = options.groups});
}

int64_t Conv2d::flops(const std::vector<Tensor>&, const Tensor& output) const {
  return output.numel() * (2 * init::fans(weight).first + (bias.defined() ? 1 : 0));
}

}  // namespace tg::nn
