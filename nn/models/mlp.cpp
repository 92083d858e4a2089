#include "tapegrad/nn/models/mlp.h"

#include "tapegrad/autograd/ops/dropout.h"
#include "tapegrad/autograd/ops/unary.h"
#include "tapegrad/autograd/ops/views.h"

namespace tg::nn {

MLP::MLP(std::vector<int64_t> s, MLPOptions o) : sizes(std::move(s)), options(o) {
  check<ValueError>(sizes.size() >= 2, "MLP: needs the sizes of at least input and output, got",
                    sizes.size());
  check<ValueError>(o.dropout >= 0 && o.dropout <= 1, "MLP: dropout must be in [0, 1], got",
                    o.dropout);
  for (size_t i = 0; i + 1 < sizes.size(); ++i) layers.emplace_back(sizes[i], sizes[i + 1]);
}

Tensor MLP::forward(const Tensor& input) {
  check(!layers.empty(), "has no layers");
  Tensor x = input.dim() > 2 ? flatten(input, 1) : input;
  for (size_t i = 0; i < layers.size(); ++i) {
    x = layers[i](x);
    if (i + 1 == layers.size()) break;
    x = relu(x);
    if (options.dropout > 0) x = dropout(x, options.dropout, training_);
  }
  return x;
}

}  // namespace tg::nn
