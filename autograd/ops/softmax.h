#pragma once
#include "tapegrad/core/tensor.h"

namespace tg {

// exp(x - max) / sum over dim. A row of -inf alone gives NaN in that row only.
Tensor softmax(const Tensor& x, int64_t dim);
Tensor log_softmax(const Tensor& x, int64_t dim);

}  // namespace tg
