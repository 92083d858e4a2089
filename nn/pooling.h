// Pooling of images [N,C,H,W] as modules (autograd/ops/pooling.h has the contracts).
#pragma once
#include "tapegrad/autograd/ops/pooling.h"
#include "tapegrad/nn/module.h"

namespace tg::nn {

struct MaxPool2d : Module {
  Size2 kernel_size;
  Pool2dOptions options;
  explicit MaxPool2d(Size2 kernel_size, Pool2dOptions options = {});
  TG_MODULE()
  Tensor forward(const Tensor& x) { return max_pool2d(x, kernel_size, options); }
  MaxPool2d remake() const { return MaxPool2d(kernel_size, options); }
};

struct AvgPool2d : Module {
  Size2 kernel_size;
  Pool2dOptions options;
  explicit AvgPool2d(Size2 kernel_size, Pool2dOptions options = {});
  TG_MODULE()
  Tensor forward(const Tensor& x) { return avg_pool2d(x, kernel_size, options); }
  AvgPool2d remake() const { return AvgPool2d(kernel_size, options); }
};

// Windows such that the output is [N,C,output_size.h,output_size.w].
struct AdaptiveAvgPool2d : Module {
  Size2 output_size;
  explicit AdaptiveAvgPool2d(Size2 output_size);
  TG_MODULE()
  Tensor forward(const Tensor& x) { return adaptive_avg_pool2d(x, output_size); }
  AdaptiveAvgPool2d remake() const { return AdaptiveAvgPool2d(output_size); }
};

}  // namespace tg::nn
