#include "tapegrad/nn/normalization.h"

#include "tapegrad/autograd/grad_mode.h"
#include "tapegrad/autograd/ops/arithmetic.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/normalization.h"
#include "tapegrad/nn/init.h"

namespace tg::nn {

BatchNorm::BatchNorm(int64_t n, BatchNormOptions o) : num_features(n), options(o) {
  check<ValueError>(n > 0, "BatchNorm: the number of features must be at least 1, got", n);
  check<ValueError>(o.eps > 0, "BatchNorm: eps must be positive, got", o.eps);
  if (o.affine) {
    weight = ones({n});
    bias = zeros({n});
  }
  if (o.track_running_stats) {
    running_mean = zeros({n});
    running_var = ones({n});
    num_batches_tracked = zeros({}, i64);
  }
}

Tensor BatchNorm::forward(const Tensor& x) {
  check_input(x);
  check<ShapeError>(x.size(1) == num_features, "expects", num_features,
                    "channels in dimension 1, got", x.shape());
  bool tracked = running_mean.defined();
  double momentum = options.momentum.value_or(0);
  if (training_ && tracked) {
    NoGradGuard no_grad;
    add_(num_batches_tracked, 1);
    if (!options.momentum) momentum = 1 / num_batches_tracked.item();
  }
  return batch_norm(x, running_mean, running_var, weight, bias,
                    {.training = training_ || !tracked, .momentum = momentum, .eps = options.eps});
}

void BatchNorm1d::check_input(const Tensor& x) const {
  check<ShapeError>(x.dim() == 2 || x.dim() == 3, "expects [N,C] or [N,C,L], got", x.shape());
}

void BatchNorm2d::check_input(const Tensor& x) const {
  check<ShapeError>(x.dim() == 4, "expects images [N,C,H,W], got", x.shape());
}

LayerNorm::LayerNorm(const Shape& shape, LayerNormOptions o) : normalized_shape(shape), options(o) {
  check<ValueError>(shape.rank() > 0 && shape.numel() > 0,
                    "LayerNorm: the normalised shape must have elements, got", shape);
  check<ValueError>(o.eps >= 0, "LayerNorm: eps must not be negative, got", o.eps);
  if (!o.elementwise_affine) return;
  weight = ones(shape);
  if (o.bias) bias = zeros(shape);
}

Tensor LayerNorm::forward(const Tensor& x) {
  return layer_norm(x, normalized_shape, weight, bias, options.eps);
}

}  // namespace tg::nn
