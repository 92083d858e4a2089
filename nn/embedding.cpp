#include "tapegrad/nn/embedding.h"

#include "tapegrad/autograd/grad_mode.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/embedding.h"
#include "tapegrad/autograd/ops/views.h"
#include "tapegrad/nn/init.h"

namespace tg::nn {

Embedding::Embedding(int64_t count, int64_t dim, EmbeddingOptions o) : options(o) {
  check<ValueError>(count > 0 && dim > 0, "Embedding: sizes must be at least 1, got", count,
                    "rows of", dim);
  if (auto& p = options.padding_index) {
    check<ValueError>(-count <= *p && *p < count, "Embedding: padding index", *p,
                      "is outside of the", count, "rows");
    if (*p < 0) p = *p + count;
  }
  weight = empty({count, dim});
  reset_parameters();
}

void Embedding::reset_parameters() {
  init::normal_(weight);
  NoGradGuard no_grad;
  if (options.padding_index) init::zeros_(select(weight, 0, *options.padding_index));
}

Tensor Embedding::forward(const Tensor& indices) {
  return embedding(indices, weight, options.padding_index);
}

}  // namespace tg::nn
