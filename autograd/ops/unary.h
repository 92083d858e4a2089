// Elementwise functions of one operand. Integers are promoted to f32 where the result is not an
// integer (exp, sqrt, ...). Functors in kernels/unary_ops.h.
#pragma once
#include <limits>

#include "tapegrad/core/tensor.h"

namespace tg {

Tensor neg(const Tensor& x);
Tensor abs(const Tensor& x);   // derivative at 0 is 0
Tensor sign(const Tensor& x);  // derivative 0
Tensor square(const Tensor& x);
Tensor reciprocal(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor expm1(const Tensor& x);
Tensor log(const Tensor& x);
Tensor log1p(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor erf(const Tensor& x);
Tensor floor(const Tensor& x);  // floor, ceil, round (half to even): derivative 0
Tensor ceil(const Tensor& x);
Tensor round(const Tensor& x);

Tensor sigmoid(const Tensor& x);
Tensor relu(const Tensor& x);  // derivative at 0 is 0; NaN stays NaN
Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);
Tensor elu(const Tensor& x, double alpha = 1.0);
enum class Gelu { erf, tanh };
Tensor gelu(const Tensor& x, Gelu form = Gelu::erf);
Tensor silu(const Tensor& x);
Tensor softplus(const Tensor& x);  // log(1 + e^x)

// Limits x to [low, high]; NaN stays NaN; high where low > high. The derivative is 1 inside, 0 at
// the bounds and beyond.
Tensor clamp(const Tensor& x, double low = -std::numeric_limits<double>::infinity(),
             double high = std::numeric_limits<double>::infinity());

const Tensor& neg_(const Tensor& x);
const Tensor& exp_(const Tensor& x);
const Tensor& sqrt_(const Tensor& x);
const Tensor& tanh_(const Tensor& x);
const Tensor& sigmoid_(const Tensor& x);
const Tensor& relu_(const Tensor& x);
const Tensor& clamp_(const Tensor& x, double low, double high);

}  // namespace tg
