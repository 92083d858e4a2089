#pragma once
#include <optional>

#include "tapegrad/core/tensor.h"

namespace tg {

struct AttentionOptions {
  Tensor mask = {};     // broadcast to [..,T,S]: bool (true takes part) or float (added)
  double dropout = 0;   // probability, on the weights
  bool causal = false;  // query i sees keys 0..i; not together with a mask
  std::optional<double> scale = {};  // default 1/sqrt(E)
};
// softmax(q k^T scale + mask) v for q [..,T,E], k [..,S,E], v [..,S,Ev] -> [..,T,Ev]. A query that
// sees no key gives 0 and no gradient. No [T,S] matrix is kept.
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const AttentionOptions& options = {});

}  // namespace tg
