// Derivatives of functions as tensors.
#pragma once

#include "tapegrad/core/function.h"
#include "tapegrad/core/tensor.h"

namespace tg {

// d fn(x) / d x, of shape [fn(x).shape.., x.shape..]; one backward per element of fn(x). With
// create_graph the result can be differentiated again.
Tensor jacobian(const Function<Tensor(const Tensor&)>& fn, const Tensor& x,
                bool create_graph = false);
// Second derivatives of fn, which returns one element: [x.shape.., x.shape..].
Tensor hessian(const Function<Tensor(const Tensor&)>& fn, const Tensor& x);

}  // namespace tg
