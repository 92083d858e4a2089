#include "tapegrad/autograd/ops/arithmetic.h"

#include <cmath>

#include "tapegrad/autograd/elementwise.h"
#include "tapegrad/autograd/ops/comparison.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/unary.h"
#include "tapegrad/kernels/binary.h"
#include "tapegrad/kernels/unary.h"

namespace tg {
namespace {

Tensor computed(const functor::Binary& f, const Tensor& a, const Tensor& b) {
  Tensor y = empty_result(a, b, a.dtype());
  on(a.device(), [&](auto device) { kernels::binary(device, f, a.read(), b.read(), y.write()); });
  return y;
}
Tensor computed(const functor::Binary& f, const Tensor& a, Scalar b) {
  Tensor y = empty_like(a);
  on(a.device(), [&](auto device) { kernels::binary(device, f, a.read(), b, y.write()); });
  return y;
}

DType float_type(DType t) { return is_floating(t) ? t : f32; }

// The tensor beside a number, in the dtype of the result.
Tensor beside(const Op& op, const Tensor& input, Scalar number) {
  Tensor x = op.in(input);
  DType dtype = result_type(x.dtype(), number);
  return x.dtype() == dtype ? x : cast(x, dtype);
}
Tensor float_beside(const Op& op, const Tensor& input) {
  Tensor x = op.in(input);
  return x.is_floating() ? x : cast(x, f32);
}

}  // namespace

// y = a + b    da = dy, db = dy
Tensor add(const Tensor& a, const Tensor& b) {
  Op op("add");
  Operands x(op, a, b);
  return op.record(computed(functor::Add{}, x.a(), x.b()), {x.a(), x.b()},
                   [](const Tensor& dy, Needs) -> Grads {
                     return {dy, dy};
                   });
}
Tensor add(const Tensor& a, Scalar b) {
  Op op("add");
  Tensor x = beside(op, a, b);
  return op.record(computed(functor::Add{}, x, b), {x},
                   [](const Tensor& dy, Needs) -> Grads { return {dy}; });
}

// y = a - b    da = dy, db = -dy
Tensor sub(const Tensor& a, const Tensor& b) {
  Op op("sub");
  check_difference(a.dtype(), b.dtype());
  Operands x(op, a, b);
  return op.record(computed(functor::Sub{}, x.a(), x.b()), {x.a(), x.b()},
                   [](const Tensor& dy, Needs needs) -> Grads {
                     return {dy, needs[1] ? -dy : Tensor()};
                   });
}
Tensor sub(const Tensor& a, Scalar b) {
  Op op("sub");
  check_difference(a.dtype(), b.dtype());
  Tensor x = beside(op, a, b);
  return op.record(computed(functor::Sub{}, x, b), {x},
                   [](const Tensor& dy, Needs) -> Grads { return {dy}; });
}
Tensor sub(Scalar a, const Tensor& b) {
  Op op("sub");
  check_difference(a.dtype(), b.dtype());
  Tensor x = beside(op, b, a);
  return op.record(computed(functor::SubFrom{}, x, a), {x},
                   [](const Tensor& dy, Needs) -> Grads { return {-dy}; });
}

// y = a * b    da = dy * b, db = dy * a
Tensor mul(const Tensor& a, const Tensor& b) {
  Op op("mul");
  Operands x(op, a, b);
  Tensor y = computed(functor::Mul{}, x.a(), x.b());
  return op.record(
      std::move(y), {x.a(), x.b()},
      [a = Saved::input(x.a()), b = Saved::input(x.b())](const Tensor& dy, Needs needs) -> Grads {
        return {needs[0] ? dy * b.get() : Tensor(), needs[1] ? dy * a.get() : Tensor()};
      });
}
Tensor mul(const Tensor& a, Scalar b) {
  Op op("mul");
  Tensor x = beside(op, a, b);
  return op.record(computed(functor::Mul{}, x, b), {x},
                   [b](const Tensor& dy, Needs) -> Grads { return {dy * b}; });
}

// y = a / b    da = dy / b, db = -dy * (a / b) / b
Tensor div(const Tensor& a, const Tensor& b) {
  Op op("div");
  Operands x(op, a, b, float_type);
  Tensor y = computed(functor::Div{}, x.a(), x.b());
  return op.record(
      std::move(y), {x.a(), x.b()},
      [a = Saved::input(x.a()), b = Saved::input(x.b())](const Tensor& dy, Needs needs) -> Grads {
        Tensor u = dy / b.get();
        return {u, needs[1] ? -(u * (a.get() / b.get())) : Tensor()};
      });
}
Tensor div(const Tensor& a, Scalar b) {
  Op op("div");
  Tensor x = float_beside(op, a);
  return op.record(computed(functor::Div{}, x, b), {x},
                   [b](const Tensor& dy, Needs) -> Grads { return {dy / b}; });
}
Tensor div(Scalar a, const Tensor& b) {
  Op op("div");
  Tensor x = float_beside(op, b);
  return op.record(computed(functor::DivFrom{}, x, a), {x},
                   [a, x = Saved::input(x)](const Tensor& dy, Needs) -> Grads {
                     Tensor b = x.get();
                     return {-(dy / b * (a / b))};
                   });
}

// y = a^b    da = dy * b * a^(b - 1), 0 where b == 0;    db = dy * y * log(a), 0 where a == 0 <= b
// What is not chosen is kept finite as well, or its second derivative would be NaN.
Tensor pow(const Tensor& first, const Tensor& second) {
  Op op("pow", Cast::f32);
  Tensor in_a = op.in(first), in_b = op.in(second);
  Operands x(op, in_a, in_b);
  check<DTypeError>(x.dtype() != DType::boolean, "two bool tensors have no power; cast one first");
  Tensor y = computed(functor::Pow{}, x.a(), x.b());
  return op.record(y, {x.a(), x.b()},
                   [a = Saved::input(x.a()), b = Saved::input(x.b()), y = Saved::output(y)](
                       const Tensor& dy, Needs needs) -> Grads {
                     Tensor base = a.get(), exponent = b.get(), da, db;
                     if (needs[0]) {
                       Tensor flat = eq(exponent, 0);
                       Tensor lower = where(flat, 1, exponent) - 1;
                       da = where(flat, 0, dy * (exponent * pow(base, lower)));
                     }
                     if (needs[1]) {
                       Tensor flat = logical_and(eq(base, 0), ge(exponent, 0));
                       db = where(flat, 0, dy * (y.get() * log(where(flat, 1, base))));
                     }
                     return {da, db};
                   });
}

namespace {

// Small exponents have functions of their own, faster and exact.
Tensor known_power(const Tensor& x, double exponent) {
  if (exponent == 1) return clone(x);
  if (exponent == 2) return square(x);
  if (exponent == 3) return square(x) * x;
  if (exponent == 0.5) return sqrt(x);
  if (exponent == -0.5) return rsqrt(x);
  if (exponent == -1) return reciprocal(x);
  return Tensor();
}

}  // namespace

// y = a^p    da = dy * p * a^(p - 1)
Tensor pow(const Tensor& a, Scalar p) {
  Op op("pow", Cast::f32);
  Tensor x = beside(op, a, p);
  if (!x.is_floating()) {
    check<ValueError>(p.to_int64() >= 0,
                      "an integer to a negative power; cast it to a float first");
    return computed(functor::Pow{}, x, p);
  }
  double exponent = p.to_double();
  if (Tensor y = known_power(x, exponent); y.defined()) return y;
  if (exponent == 0)  // 1 everywhere, at 0 too: no derivative may come from 0 * 0^-1
    return op.record(ones_like(x), {x},
                     [](const Tensor& dy, Needs) -> Grads { return {zeros_like(dy)}; });
  Tensor y = empty_like(x);
  functor::PowNumber f{exponent};
  on(x.device(), [&](auto device) { kernels::unary(device, f, x.read(), y.write()); });
  return op.record(std::move(y), {x}, [x = Saved::input(x), p](const Tensor& dy, Needs) -> Grads {
    return {dy * (pow(x.get(), p.to_double() - 1) * p)};
  });
}

// y = p^b    db = dy * y * log(p), 0 where p == 0 <= b
Tensor pow(Scalar p, const Tensor& b) {
  Op op("pow", Cast::f32);
  Tensor x = beside(op, b, p);
  check<DTypeError>(x.dtype() != DType::boolean, "bool has no powers; cast it first");
  Tensor y = computed(functor::PowFrom{}, x, p);
  double base = p.to_double();
  return op.record(
      y, {x}, [x = Saved::input(x), y = Saved::output(y), base](const Tensor& dy, Needs) -> Grads {
        Tensor dx = dy * (y.get() * std::log(base));
        return {base == 0 ? where(ge(x.get(), 0), 0, dx) : dx};
      });
}

namespace {

// The operand that was chosen gets dy; at a tie each gets half.
template <class Lost>
Tensor chosen(const Tensor& dy, const Tensor& own, const Tensor& other, Lost lost) {
  return where(lost(own, other), 0, where(eq(own, other), dy * 0.5, dy));
}
template <class Lost>
Tensor extreme(const Op& op, const functor::Binary& f, const Tensor& first, const Tensor& second,
               Lost lost) {
  Operands x(op, first, second);
  Tensor y = computed(f, x.a(), x.b());
  return op.record(std::move(y), {x.a(), x.b()},
                   [a = Saved::input(x.a()), b = Saved::input(x.b()), lost](const Tensor& dy,
                                                                            Needs needs) -> Grads {
                     Tensor u = a.get(), v = b.get();
                     return {needs[0] ? chosen(dy, u, v, lost) : Tensor(),
                             needs[1] ? chosen(dy, v, u, lost) : Tensor()};
                   });
}

}  // namespace

// y = max(a, b)    da = dy where a > b, dy / 2 where a == b
Tensor maximum(const Tensor& a, const Tensor& b) {
  Op op("maximum");
  return extreme(op, functor::Maximum{}, a, b,
                 [](const Tensor& u, const Tensor& v) { return lt(u, v); });
}
Tensor minimum(const Tensor& a, const Tensor& b) {
  Op op("minimum");
  return extreme(op, functor::Minimum{}, a, b,
                 [](const Tensor& u, const Tensor& v) { return gt(u, v); });
}

}  // namespace tg
