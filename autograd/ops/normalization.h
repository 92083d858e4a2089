// Normalisation layers.
#pragma once
#include "tapegrad/core/tensor.h"

namespace tg {

struct BatchNormOptions {
  bool training = false;
  double momentum = 0.1;
  double eps = 1e-5;
};
// x [N,C,...], statistics over all dimensions but C. In training the running estimates (if
// defined) are updated in place: mean, and variance with n - 1. weight and bias may be undefined.
// Under autocast x is taken as it comes, as PyTorch does: the bf16 or f16 result of a convolution
// stays that, is computed with in f32 and rounded once; statistics, weight and bias stay f32.
Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                  const Tensor& weight = {}, const Tensor& bias = {},
                  BatchNormOptions options = {});
// Over the last normalized_shape.rank() dimensions; weight and bias of that shape or undefined.
Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = {},
                  const Tensor& bias = {}, double eps = 1e-5);

}  // namespace tg
