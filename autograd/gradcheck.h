// Checks of derivatives against central differences, for people who write operators.
#pragma once
#include <vector>

#include "tapegrad/core/function.h"
#include "tapegrad/core/tensor.h"

namespace tg {

using TensorFunction = Function<std::vector<Tensor>(const std::vector<Tensor>&)>;

struct GradcheckOptions {
  double step = 1e-6;
  double atol = 1e-5;
  double rtol = 1e-4;
};
// Compares the gradients of fn's float outputs, weighted by two fixed patterns, with differences
// in every element of every f64 input that requires grad. Throws an AutogradError that names the
// input, the element and both numbers. fn must give the same result for the same inputs.
void gradcheck(const TensorFunction& fn, const std::vector<Tensor>& inputs,
               GradcheckOptions o = {});
// The same for the gradients themselves: their derivatives with respect to the inputs and to the
// incoming gradient.
void gradgradcheck(const TensorFunction& fn, const std::vector<Tensor>& inputs,
                   GradcheckOptions o = {});

}  // namespace tg
