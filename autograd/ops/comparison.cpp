#include "tapegrad/autograd/ops/comparison.h"

#include "tapegrad/autograd/elementwise.h"
#include "tapegrad/autograd/ops/arithmetic.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/reduction.h"
#include "tapegrad/autograd/ops/unary.h"
#include "tapegrad/kernels/binary.h"
#include "tapegrad/kernels/unary.h"

namespace tg {
namespace {

Tensor compared(const char* name, kernels::Compare how, const Tensor& a, const Tensor& b) {
  Op op(name);
  Operands x(op, a, b);
  Tensor y = empty_result(x.a(), x.b(), boolean);
  on(y.device(),
     [&](auto device) { kernels::compare(device, how, x.a().read(), x.b().read(), y.write()); });
  return y;
}
Tensor compared(const char* name, kernels::Compare how, const Tensor& a, Scalar b) {
  Op op(name);
  Tensor x = op.in(a);
  DType dtype = result_type(x.dtype(), b);
  if (x.dtype() != dtype) x = cast(x, dtype);
  Tensor y = empty_like(x, boolean);
  on(y.device(), [&](auto device) { kernels::compare(device, how, x.read(), b, y.write()); });
  return y;
}

// Truth values of any dtypes: nothing is promoted.
Tensor logical(const char* name, kernels::Logical how, const Tensor& a, const Tensor& b) {
  Op op(name);
  op.same_device(op.in(a), op.in(b));
  Tensor y = empty_result(a, b, boolean);
  on(y.device(),
     [&](auto device) { kernels::logical(device, how, a.read(), b.read(), y.write()); });
  return y;
}
Tensor tested(const char* name, kernels::Test question, const Tensor& input) {
  Op op(name);
  Tensor x = op.in(input);
  Tensor y = empty_like(x, boolean);
  on(y.device(), [&](auto device) { kernels::test(device, question, x.read(), y.write()); });
  return y;
}

}  // namespace

using kernels::Compare;
Tensor eq(const Tensor& a, const Tensor& b) { return compared("eq", Compare::eq, a, b); }
Tensor ne(const Tensor& a, const Tensor& b) { return compared("ne", Compare::ne, a, b); }
Tensor lt(const Tensor& a, const Tensor& b) { return compared("lt", Compare::lt, a, b); }
Tensor le(const Tensor& a, const Tensor& b) { return compared("le", Compare::le, a, b); }
Tensor gt(const Tensor& a, const Tensor& b) { return compared("gt", Compare::gt, a, b); }
Tensor ge(const Tensor& a, const Tensor& b) { return compared("ge", Compare::ge, a, b); }
Tensor eq(const Tensor& a, Scalar b) { return compared("eq", Compare::eq, a, b); }
Tensor ne(const Tensor& a, Scalar b) { return compared("ne", Compare::ne, a, b); }
Tensor lt(const Tensor& a, Scalar b) { return compared("lt", Compare::lt, a, b); }
Tensor le(const Tensor& a, Scalar b) { return compared("le", Compare::le, a, b); }
Tensor gt(const Tensor& a, Scalar b) { return compared("gt", Compare::gt, a, b); }
Tensor ge(const Tensor& a, Scalar b) { return compared("ge", Compare::ge, a, b); }

Tensor logical_and(const Tensor& a, const Tensor& b) {
  return logical("logical_and", kernels::Logical::and_, a, b);
}
Tensor logical_or(const Tensor& a, const Tensor& b) {
  return logical("logical_or", kernels::Logical::or_, a, b);
}
Tensor logical_xor(const Tensor& a, const Tensor& b) {
  return logical("logical_xor", kernels::Logical::xor_, a, b);
}
Tensor logical_not(const Tensor& x) { return tested("logical_not", kernels::Test::zero, x); }
Tensor isnan(const Tensor& x) { return tested("isnan", kernels::Test::nan, x); }
Tensor isinf(const Tensor& x) { return tested("isinf", kernels::Test::inf, x); }
Tensor isfinite(const Tensor& x) { return tested("isfinite", kernels::Test::finite, x); }

namespace {

// The broadcast shape of three operands, laid out as the first of that shape without gaps.
Tensor empty_choice(const Tensor& c, const Tensor& a, const Tensor& b) {
  Tensor y = empty_result(a, b, a.dtype());
  if (broadcast_shapes(y.shape(), c.shape()) == y.shape()) return y;
  return empty_result(y, c, a.dtype());
}
Tensor choose(const Op& op, const Tensor& c, const Tensor& a, const Tensor& b) {
  check<DTypeError>(op.in(c).dtype() == boolean, "the condition must be bool, got", c.dtype(),
                    "; compare it with 0 first");
  op.same_device(c, a);
  Tensor y = empty_choice(c, a, b);
  on(y.device(),
     [&](auto device) { kernels::where(device, c.read(), a.read(), b.read(), y.write()); });
  return y;
}

}  // namespace

// y = c ? a : b    da = c ? dy : 0, db = c ? 0 : dy
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  Op op("where");
  Operands x(op, a, b);
  Tensor y = choose(op, condition, x.a(), x.b());
  return op.record(std::move(y), {x.a(), x.b()},
                   [c = Saved::plain(condition)](const Tensor& dy, Needs needs) -> Grads {
                     return {needs[0] ? where(c.get(), dy, 0) : Tensor(),
                             needs[1] ? where(c.get(), 0, dy) : Tensor()};
                   });
}
Tensor where(const Tensor& condition, const Tensor& a, Scalar b) {
  Op op("where");
  Tensor x = op.in(a);
  DType dtype = result_type(x.dtype(), b);
  if (x.dtype() != dtype) x = cast(x, dtype);
  Tensor y = choose(op, condition, x, scalar_tensor(b, x.options()));
  return op.record(std::move(y), {x},
                   [c = Saved::plain(condition)](const Tensor& dy, Needs) -> Grads {
                     return {where(c.get(), dy, 0)};
                   });
}
Tensor where(const Tensor& condition, Scalar a, const Tensor& b) {
  Op op("where");
  Tensor x = op.in(b);
  DType dtype = result_type(x.dtype(), a);
  if (x.dtype() != dtype) x = cast(x, dtype);
  Tensor y = choose(op, condition, scalar_tensor(a, x.options()), x);
  return op.record(std::move(y), {x},
                   [c = Saved::plain(condition)](const Tensor& dy, Needs) -> Grads {
                     return {where(c.get(), 0, dy)};
                   });
}

bool equal(const Tensor& a, const Tensor& b) {
  Op op("equal");
  op.same_device(op.in(a), op.in(b));
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  return all(eq(a, b)).item_int64() != 0;
}

bool allclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  Op op("allclose");
  op.same_device(op.in(a), op.in(b));
  NoGradGuard no_grad;
  Tensor u = a.is_floating() ? a : cast(a, f64), v = b.is_floating() ? b : cast(b, f64);
  Tensor near = logical_and(le(abs(u - v), abs(v) * rtol + atol), isfinite(v));
  Tensor close = logical_or(near, eq(u, v));  // infinities are close to themselves alone
  if (equal_nan) close = logical_or(close, logical_and(isnan(u), isnan(v)));
  return all(close).item_int64() != 0;
}

}  // namespace tg
