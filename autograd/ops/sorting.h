// Order. Values carry gradients; indices are i64. NaN counts as the largest.
#pragma once
#include <utility>

#include "tapegrad/core/tensor.h"

namespace tg {

// Stable.
std::pair<Tensor, Tensor> sort(const Tensor& x, int64_t dim = -1, bool descending = false);
Tensor argsort(const Tensor& x, int64_t dim = -1, bool descending = false);
// The k largest (or smallest) along dim, in order; equal values by rising index.
std::pair<Tensor, Tensor> topk(const Tensor& x, int64_t k, int64_t dim = -1, bool largest = true);

}  // namespace tg
