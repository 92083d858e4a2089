// In-place arithmetic: x becomes f(x, b).
#include "tapegrad/autograd/elementwise.h"
#include "tapegrad/autograd/ops/arithmetic.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/views.h"
#include "tapegrad/kernels/binary.h"
#include "tapegrad/kernels/copy.h"

namespace tg {
namespace {

// A result of this dtype can be held by x: of x's category or a lower one.
void check_holds(const Tensor& x, DType result) {
  bool ok = is_floating(x.dtype()) || (is_integral(x.dtype()) && !is_floating(result)) ||
            result == DType::boolean;
  check<DTypeError>(ok, "the result is", result, "and cannot be written into a tensor of",
                    x.dtype(), "; use the operator that returns a new tensor");
}

// b as the kernel takes it: of x's dtype, and not stretching x.
Tensor fitting(const Op& op, const Tensor& x, const Tensor& b, DType result) {
  check_holds(x, result);
  Shape shape = x.shape();
  check<ShapeError>(b.dim() <= x.dim() && broadcast_shapes(x.shape(), b.shape()) == shape,
                    "the operand of shape", b.shape(),
                    "does not fit the tensor that is written:", x.shape());
  op.same_device(x, b);
  return b.dtype() == x.dtype() ? b : cast(b, x.dtype());
}

void compute(const functor::Binary& f, const Tensor& x, const Tensor& b) {
  on(x.device(), [&](auto device) {
    View a = x.read();
    kernels::binary(device, f, a, b.read(), x.write());
  });
}
void compute(const functor::Binary& f, const Tensor& x, Scalar b) {
  on(x.device(), [&](auto device) {
    View a = x.read();
    kernels::binary(device, f, a, b, x.write());
  });
}

bool wants_grad(const Tensor& x) { return grad_enabled() && x.requires_grad(); }

const Tensor& defined(const Tensor& x) {
  check(x.defined(), "the tensor to write is undefined");
  return x;
}
const Tensor& number_fits(const Tensor& x, Scalar b) {
  check_holds(defined(x), result_type(x.dtype(), b));
  return x;
}

}  // namespace

// x += b    dx = dy, db = dy
const Tensor& add_(const Tensor& x, const Tensor& input) {
  Op op("add_");
  defined(x);
  Tensor b = op.in(input);
  b = fitting(op, x, b, result_type(x, b));
  op.prepare_inplace(x, {b});
  compute(functor::Add{}, x, b);
  return op.record_inplace(x, {x, b}, [](const Tensor& dy, Needs) -> Grads { return {dy, dy}; });
}
const Tensor& add_(const Tensor& x, Scalar b) {
  Op op("add_");
  op.prepare_inplace(number_fits(x, b));
  compute(functor::Add{}, x, b);
  return op.record_inplace(x, {x}, [](const Tensor& dy, Needs) -> Grads { return {dy}; });
}

// x -= b    dx = dy, db = -dy
const Tensor& sub_(const Tensor& x, const Tensor& input) {
  Op op("sub_");
  defined(x);
  Tensor b = op.in(input);
  check_difference(x.dtype(), b.dtype());
  b = fitting(op, x, b, result_type(x, b));
  op.prepare_inplace(x, {b});
  compute(functor::Sub{}, x, b);
  return op.record_inplace(x, {x, b}, [](const Tensor& dy, Needs needs) -> Grads {
    return {dy, needs[1] ? -dy : Tensor()};
  });
}
const Tensor& sub_(const Tensor& x, Scalar b) {
  Op op("sub_");
  check_difference(defined(x).dtype(), b.dtype());
  op.prepare_inplace(number_fits(x, b));
  compute(functor::Sub{}, x, b);
  return op.record_inplace(x, {x}, [](const Tensor& dy, Needs) -> Grads { return {dy}; });
}

// x *= b    dx = dy * b, db = dy * x, with x as it was before
const Tensor& mul_(const Tensor& x, const Tensor& input) {
  Op op("mul_");
  defined(x);
  Tensor b = op.in(input);
  b = fitting(op, x, b, result_type(x, b));
  op.prepare_inplace(x, {b});
  bool shared = b.shares_storage(x);  // x *= x: b's old values go too
  Tensor old, factor = b;
  if (wants_grad(b)) old = clone(x);
  if (shared && (wants_grad(x) || wants_grad(b))) factor = clone(b);
  compute(functor::Mul{}, x, b);
  Saved old_x = old.defined() ? Saved::input(old) : Saved();
  return op.record_inplace(
      x, {x, b}, [old_x, b = Saved::input(factor)](const Tensor& dy, Needs needs) -> Grads {
        return {needs[0] ? dy * b.get() : Tensor(), needs[1] ? dy * old_x.get() : Tensor()};
      });
}
const Tensor& mul_(const Tensor& x, Scalar b) {
  Op op("mul_");
  op.prepare_inplace(number_fits(x, b));
  compute(functor::Mul{}, x, b);
  return op.record_inplace(x, {x}, [b](const Tensor& dy, Needs) -> Grads { return {dy * b}; });
}

// x /= b    dx = dy / b, db = -dy * (x / b) / b, with x as it was before
const Tensor& div_(const Tensor& x, const Tensor& input) {
  Op op("div_");
  defined(x);
  Tensor b = op.in(input);
  DType result = result_type(x, b);
  b = fitting(op, x, b, is_floating(result) ? result : f32);
  op.prepare_inplace(x, {b});
  bool shared = b.shares_storage(x);
  Tensor old, divisor = b;
  if (wants_grad(b)) old = clone(x);
  if (shared && (wants_grad(x) || wants_grad(b))) divisor = clone(b);
  compute(functor::Div{}, x, b);
  Saved old_x = old.defined() ? Saved::input(old) : Saved();
  return op.record_inplace(
      x, {x, b}, [old_x, b = Saved::input(divisor)](const Tensor& dy, Needs needs) -> Grads {
        Tensor v = b.get(), u = dy / v;
        return {u, needs[1] ? -(u * (old_x.get() / v)) : Tensor()};
      });
}
const Tensor& div_(const Tensor& x, Scalar b) {
  Op op("div_");
  check_holds(defined(x), is_floating(x.dtype()) ? x.dtype() : f32);
  op.prepare_inplace(x);
  compute(functor::Div{}, x, b);
  return op.record_inplace(x, {x}, [b](const Tensor& dy, Needs) -> Grads { return {dy / b}; });
}

}  // namespace tg
