#include "tapegrad/autograd/ops/unary.h"

#include <cmath>

#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops/arithmetic.h"
#include "tapegrad/autograd/ops/comparison.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/kernels/unary.h"

namespace tg {

using functor::Saves;

// What the derivatives in kernels/unary_ops.h need beside the public operators to run on tensors.
template <>
struct functor::ConstantOf<Tensor> {
  using type = Scalar;
};
static Tensor clamp(const Tensor& x, Scalar low, Scalar high) {
  return clamp(x, low.to_double(), high.to_double());
}
static Tensor normal_cdf(const Tensor& x);
static Tensor normal_pdf(const Tensor& x) { return exp(x * x * -0.5) * 0.39894228040143267794; }

namespace {

// dx = df(saved, dy): a fused kernel, or operators when the derivative is itself recorded.
template <class F>
Tensor gradient(const F& f, const Tensor& saved, const Tensor& dy) {
  if (grad_enabled()) return f.df(saved, dy);
  Tensor dx = empty_like(saved);
  on(dx.device(),
     [&](auto device) { kernels::unary_grad(device, f, saved.read(), dy.read(), dx.write()); });
  return dx;
}

template <class F>
void compute(const F& f, const Tensor& x, const Tensor& y) {
  on(x.device(), [&](auto device) {
    View from = x.read();
    kernels::unary(device, f, from, y.write());
  });
}

// The backward of a functor; `saved` is empty if it needs nothing.
template <class F>
auto backward_of(const F& f, Saved saved) {
  if constexpr (functor::Flat<F>)
    return [](const Tensor& dy, Needs) -> Grads { return {zeros_like(dy)}; };
  else
    return [f, saved = std::move(saved)](const Tensor& dy, Needs) -> Grads {
      return {gradient(f, F::saves == Saves::nothing ? dy : saved.get(), dy)};
    };
}

template <class F>
Tensor unary(const char* name, const Tensor& input, const F& f, Cast rule = Cast::none) {
  Op op(name, rule);
  Tensor x = op.in(input);
  if constexpr (functor::OnIntegers<F>)
    check<DTypeError>(x.dtype() != boolean, "is not defined for bool; cast it first");
  else if (!x.is_floating())
    x = cast(x, f32);
  Tensor y = empty_like(x);
  compute(f, x, y);
  Saved saved;
  if constexpr (F::saves == Saves::input) saved = Saved::input(x);
  if constexpr (F::saves == Saves::output) saved = Saved::output(y);
  return op.record(std::move(y), {x}, backward_of(f, std::move(saved)));
}

template <class F>
const Tensor& unary_(const char* name, const Tensor& x, const F& f) {
  Op op(name);
  check(x.defined(), "the tensor to write is undefined");
  if constexpr (functor::OnIntegers<F>)
    check<DTypeError>(x.dtype() != boolean, "is not defined for bool");
  else
    check<DTypeError>(x.is_floating(), "the result is a float and cannot be written into",
                      x.dtype());
  op.prepare_inplace(x);
  Tensor old;
  if (F::saves == Saves::input && grad_enabled() && x.requires_grad()) old = clone(x);
  compute(f, x, x);
  Saved saved;
  if (old.defined()) saved = Saved::input(old);
  if constexpr (F::saves == Saves::output) saved = Saved::output(x);
  return op.record_inplace(x, {x}, backward_of(f, std::move(saved)));
}

bool is_bool(const Tensor& x) { return x.defined() && x.dtype() == boolean; }

// Rounding leaves integers as they are.
template <class F>
Tensor rounded(const char* name, const Tensor& x, const F& f) {
  if (!x.defined() || x.is_floating()) return unary(name, x, f);
  Op op(name);
  check<DTypeError>(!is_bool(x), "is not defined for bool; cast it first");
  return clone(x);
}

void check_bounds(const Tensor& x, double low, double high) {
  check(x.defined(), "clamp: an input is undefined");
  check<ValueError>(!std::isnan(low) && !std::isnan(high), "clamp: a bound is NaN");
}

}  // namespace

static Tensor normal_cdf(const Tensor& x) { return unary("normal_cdf", x, functor::NormalCdf{}); }

Tensor neg(const Tensor& x) { return unary("neg", x, functor::Neg{}); }
Tensor abs(const Tensor& x) { return unary("abs", x, functor::Abs{}); }
Tensor sign(const Tensor& x) { return is_bool(x) ? clone(x) : unary("sign", x, functor::Sign{}); }
Tensor square(const Tensor& x) {
  return is_bool(x) ? cast(x, i64) : unary("square", x, functor::Square{}, Cast::f32);
}
Tensor reciprocal(const Tensor& x) {
  return unary("reciprocal", x, functor::Reciprocal{}, Cast::f32);
}
Tensor exp(const Tensor& x) { return unary("exp", x, functor::Exp{}, Cast::f32); }
Tensor expm1(const Tensor& x) { return unary("expm1", x, functor::Expm1{}, Cast::f32); }
Tensor log(const Tensor& x) { return unary("log", x, functor::Log{}, Cast::f32); }
Tensor log1p(const Tensor& x) { return unary("log1p", x, functor::Log1p{}, Cast::f32); }
Tensor sqrt(const Tensor& x) { return unary("sqrt", x, functor::Sqrt{}); }
Tensor rsqrt(const Tensor& x) { return unary("rsqrt", x, functor::Rsqrt{}, Cast::f32); }
Tensor sin(const Tensor& x) { return unary("sin", x, functor::Sin{}); }
Tensor cos(const Tensor& x) { return unary("cos", x, functor::Cos{}); }
Tensor tanh(const Tensor& x) { return unary("tanh", x, functor::Tanh{}); }
Tensor erf(const Tensor& x) { return unary("erf", x, functor::Erf{}); }
Tensor floor(const Tensor& x) { return rounded("floor", x, functor::Floor{}); }
Tensor ceil(const Tensor& x) { return rounded("ceil", x, functor::Ceil{}); }
Tensor round(const Tensor& x) { return rounded("round", x, functor::Round{}); }

Tensor sigmoid(const Tensor& x) { return unary("sigmoid", x, functor::Sigmoid{}); }
Tensor relu(const Tensor& x) { return unary("relu", x, functor::Relu{}); }
Tensor leaky_relu(const Tensor& x, double negative_slope) {
  return unary("leaky_relu", x, functor::LeakyRelu{negative_slope});
}
Tensor elu(const Tensor& x, double alpha) { return unary("elu", x, functor::Elu{alpha}); }
Tensor gelu(const Tensor& x, Gelu form) {
  if (form == Gelu::tanh) return unary("gelu", x, functor::GeluTanh{});
  return unary("gelu", x, functor::GeluErf{});
}
Tensor silu(const Tensor& x) { return unary("silu", x, functor::Silu{}); }
Tensor softplus(const Tensor& x) { return unary("softplus", x, functor::Softplus{}, Cast::f32); }

Tensor clamp(const Tensor& x, double low, double high) {
  check_bounds(x, low, high);
  if (is_bool(x)) return clamp(cast(x, i64), low, high);
  auto whole = [](double v) { return std::isinf(v) || v == std::trunc(v); };
  if (!x.is_floating() && !(whole(low) && whole(high)))
    return clamp(cast(x, f32), low, high);  // a bound with a fraction makes the result a float
  return unary("clamp", x, functor::Clamp{low, high});
}

const Tensor& neg_(const Tensor& x) { return unary_("neg_", x, functor::Neg{}); }
const Tensor& exp_(const Tensor& x) { return unary_("exp_", x, functor::Exp{}); }
const Tensor& sqrt_(const Tensor& x) { return unary_("sqrt_", x, functor::Sqrt{}); }
const Tensor& tanh_(const Tensor& x) { return unary_("tanh_", x, functor::Tanh{}); }
const Tensor& sigmoid_(const Tensor& x) { return unary_("sigmoid_", x, functor::Sigmoid{}); }
const Tensor& relu_(const Tensor& x) { return unary_("relu_", x, functor::Relu{}); }
const Tensor& clamp_(const Tensor& x, double low, double high) {
  check_bounds(x, low, high);
  return unary_("clamp_", x, functor::Clamp{low, high});
}

}  // namespace tg
