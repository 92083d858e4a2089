// Linear layers with ReLU between them.
#pragma once
#include "tapegrad/nn/linear.h"

namespace tg::nn {

struct MLPOptions {
  double dropout = 0;  // after each hidden layer
};

// MLP({784, 128, 10}): 784 inputs, one hidden layer of 128, 10 outputs. More than two dimensions
// of the input are flattened: [N,1,28,28] -> [N,784]. Names: layers.0.weight, ...
struct MLP : Module {
  std::vector<int64_t> sizes;
  MLPOptions options;
  std::vector<Linear> layers;
  explicit MLP(std::vector<int64_t> sizes, MLPOptions options = {});
  TG_MODULE(layers)
  Tensor forward(const Tensor& x);
  MLP remake() const { return MLP(sizes, options); }
};

}  // namespace tg::nn
