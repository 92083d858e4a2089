// Layers that multiply by a matrix, and the one that does nothing.
#pragma once
#include "tapegrad/nn/module.h"

namespace tg::nn {

struct LinearOptions {
  bool bias = true;
};

// x [..,in] -> x weight^T + bias [..,out]. Weight [out,in] and bias [out] start uniform in
// +- 1/sqrt(in). ValueError for sizes below 1.
struct Linear : Module {
  int64_t in_features, out_features;
  Parameter weight, bias;
  Linear(int64_t in, int64_t out, LinearOptions options = {});
  TG_MODULE(weight, bias)
  Tensor forward(const Tensor& x);
  void reset_parameters();
  Linear remake() const;
  int64_t flops(const std::vector<Tensor>& inputs, const Tensor& output) const override;
};

struct Identity : Module {
  TG_MODULE()
  Tensor forward(const Tensor& x);
};

struct FlattenOptions {
  int64_t start_dim = 1, end_dim = -1;
};

struct Flatten : Module {
  FlattenOptions options;
  Flatten(FlattenOptions options = {}) : options(options) {}
  TG_MODULE()
  Tensor forward(const Tensor& x);
  Flatten remake() const { return options; }
};

}  // namespace tg::nn
