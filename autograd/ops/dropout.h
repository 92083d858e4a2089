#pragma once
#include "tapegrad/core/tensor.h"

namespace tg {

// In training each element is 0 with probability p, else divided by 1 - p; p in [0, 1].
Tensor dropout(const Tensor& x, double p = 0.5, bool training = true);

}  // namespace tg
