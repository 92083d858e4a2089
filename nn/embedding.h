// Layers that look up rows.
#pragma once
#include "tapegrad/nn/module.h"

namespace tg::nn {

struct EmbeddingOptions {
  // Rows at this index (negative counts from the end) start as zeros and get no gradient. Forward
  // returns whatever the row holds; weight decay still shrinks it, as in PyTorch.
  std::optional<int64_t> padding_index = {};
};

// indices [...] of an integer type -> [...,dim]. Weight [count,dim] starts normal (0, 1).
// IndexError for an index outside of [0, count).
struct Embedding : Module {
  EmbeddingOptions options;
  Parameter weight;
  Embedding(int64_t count, int64_t dim, EmbeddingOptions options = {});
  TG_MODULE(weight)
  Tensor forward(const Tensor& indices);
  void reset_parameters();
  Embedding remake() const { return {weight.size(0), weight.size(1), options}; }
};

}  // namespace tg::nn
