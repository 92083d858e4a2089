// Derivatives of functions as tensors.
#pragma once
#include <functional>

#include "tapegrad/core/tensor.h"

namespace tg {

// d fn(x) / d x, of shape [fn(x).shape.., x.shape..]; one backward per element of fn(x). With
// create_graph the result can be differentiated again.
Tensor jacobian(const std::function<Tensor(const Tensor&)>& fn, const Tensor& x,
                bool create_graph = false);
// Second derivatives of fn, which returns one element: [x.shape.., x.shape..].
Tensor hessian(const std::function<Tensor(const Tensor&)>& fn, const Tensor& x);

}  // namespace tg
