// Layers that normalise.
#pragma once
#include "tapegrad/nn/module.h"

namespace tg::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  // Weight of the new batch in the running estimates; without a value they are plain averages
  // over all batches so far.
  std::optional<double> momentum = 0.1;
  bool affine = true;               // a weight (1) and a bias (0) per channel
  bool track_running_stats = true;  // else statistics come from the batch, in eval mode too
};

// x [N,C,...] normalised per channel: by the batch's statistics in training, by the running ones
// in eval mode. Use BatchNorm1d or BatchNorm2d, which check the rank.
class BatchNorm : public Module {
 public:
  int64_t num_features;
  BatchNormOptions options;
  Parameter weight, bias;
  Buffer running_mean, running_var, num_batches_tracked;
  TG_MODULE(weight, bias, running_mean, running_var, num_batches_tracked)
  Tensor forward(const Tensor& x);

 protected:
  BatchNorm(int64_t num_features, BatchNormOptions options);
  virtual void check_input(const Tensor& x) const = 0;
};

// x [N,C] or [N,C,L].
struct BatchNorm1d : BatchNorm {
  explicit BatchNorm1d(int64_t num_features, BatchNormOptions options = {})
      : BatchNorm(num_features, options) {}
  BatchNorm1d remake() const { return BatchNorm1d(num_features, options); }

 protected:
  void check_input(const Tensor& x) const override;
};

// x [N,C,H,W].
struct BatchNorm2d : BatchNorm {
  explicit BatchNorm2d(int64_t num_features, BatchNormOptions options = {})
      : BatchNorm(num_features, options) {}
  BatchNorm2d remake() const { return BatchNorm2d(num_features, options); }

 protected:
  void check_input(const Tensor& x) const override;
};

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;  // a weight (1) and a bias (0) per element
  bool bias = true;
};

// Over the last dimensions, whose sizes must be `normalized_shape`.
struct LayerNorm : Module {
  Shape normalized_shape;
  LayerNormOptions options;
  Parameter weight, bias;
  explicit LayerNorm(const Shape& normalized_shape, LayerNormOptions options = {});
  explicit LayerNorm(int64_t size, LayerNormOptions options = {})
      : LayerNorm(Shape({size}), options) {}
  TG_MODULE(weight, bias)
  Tensor forward(const Tensor& x);
  LayerNorm remake() const { return LayerNorm(normalized_shape, options); }
};

}  // namespace tg::nn
