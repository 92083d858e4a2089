#pragma once
#include <optional>

#include "tapegrad/core/tensor.h"

namespace tg {

// Rows of weight [count,dim] at integer indices [...]: [...,dim]. IndexError outside [0,count).
// padding_index (may be negative): that row gets no gradient.
Tensor embedding(const Tensor& indices, const Tensor& weight,
                 std::optional<int64_t> padding_index = {});
// i64 indices [...] -> i64 [...,classes] of 0 and 1; classes < 0: the largest index + 1.
Tensor one_hot(const Tensor& indices, int64_t classes = -1);

}  // namespace tg
