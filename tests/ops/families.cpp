#include "ops/table.h"

namespace tg::test {

const std::vector<Family>& families() {
  static const std::vector<Family> all = {
      {"arithmetic", arithmetic_rows()},
      {"comparison", comparison_rows()},
      {"unary", unary_rows()},
      {"reduction", reduction_rows()},
      {"creation", creation_rows()},
      {"views", view_rows()},
      {"joining", joining_rows()},
      {"indexing", indexing_rows()},
      {"sorting", sorting_rows()},
      {"random", random_rows()},
      {"conv", conv_rows()},
      {"pooling", pooling_rows()},
      {"batch_norm", batch_norm_rows()},
      {"matmul", matmul_rows()},
      {"softmax", softmax_rows()},
      {"losses", loss_rows()},
      {"normalization", normalization_rows()},
      {"embedding", embedding_rows()},
      {"attention", attention_rows()},
      {"dropout", dropout_rows()},
  };
  return all;
}

}  // namespace tg::test
