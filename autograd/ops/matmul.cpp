#include "tapegrad/autograd/ops/matmul.h"

#include <cmath>

#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops/arithmetic.h"
#include "tapegrad/autograd/ops/reduction.h"
#include "tapegrad/autograd/ops/views.h"
#include "tapegrad/kernels/matmul.h"

namespace tg {
namespace {

void check_types(const Op& op, const Tensor& a, const Tensor& b) {
  op.same_device(a, b);
  check<DTypeError>(a.dtype() == b.dtype(), "operands differ in dtype:", a, b,
                    "- cast one with .to(dtype)");
  check<DTypeError>(a.dtype() != boolean, "bool cannot be multiplied as a matrix:", a,
                    "- cast it with .to(i32) or .to(f32)");
}

void check_inner(const Tensor& a, const Tensor& b) {
  const int64_t right = b.dim() == 1 ? b.size(0) : b.size(-2);
  check<ShapeError>(a.size(-1) == right, "inner sizes differ:", a.shape(), b.shape());
}

Shape batch_of(const Tensor& x) {
  Shape shape = x.shape();
  shape.erase(shape.rank() - 1);
  shape.erase(shape.rank() - 1);
  return shape;
}

// [rows, last dimension], whatever the rows were before.
Tensor as_rows(const Tensor& x) {
  int64_t rows = 1;
  for (int i = 0; i + 1 < x.dim(); ++i) rows *= x.shape()[i];
  return reshape(x, {rows, x.size(-1)});
}

// The gradient of a factor must not hold the other one longer than it is needed.
Saved save_for(const Tensor& factor, const Tensor& other) {
  return requires_grad(other) ? Saved::input(factor) : Saved();
}

// c = a b, both of rank 2 or more    da = dc b^T    db = a^T dc, summed over broadcast dimensions
Tensor product(const Op& op, const Tensor& a, const Tensor& b) {
  Shape shape = broadcast_shapes(batch_of(a), batch_of(b));
  shape.push_back(a.size(-2));
  shape.push_back(b.size(-1));
  Tensor c = empty(shape, a.options());
  on(a.device(), [&](auto device) { kernels::matmul(device, a.read(), b.read(), c.write()); });
  // One matrix for a whole batch: its gradient is one product over all rows, not a sum of many.
  const bool shared = b.dim() == 2 && a.dim() > 2;
  return op.record(
      c, {a, b},
      [a = save_for(a, b), b = save_for(b, a), shared](const Tensor& dc, Needs needs) -> Grads {
        Tensor da, db;
        if (needs[0]) da = matmul(dc, transpose(b.get(), -2, -1));
        if (needs[1]) {
          const Tensor x = a.get();
          db = shared ? matmul(t(as_rows(x)), as_rows(dc)) : matmul(transpose(x, -2, -1), dc);
        }
        return {da, db};
      });
}

Tensor checked_product(const char* name, const Tensor& a, const Tensor& b, int64_t rank_a,
                       int64_t rank_b) {
  Op op(name);
  const Tensor x = op.in(a), y = op.in(b);
  check<ShapeError>(x.dim() == rank_a && y.dim() == rank_b, "takes ranks", rank_a, "and", rank_b,
                    "- got", x.shape(), y.shape(), "- matmul takes any");
  if (rank_a == 3) {
    check<ShapeError>(x.size(0) == y.size(0), "batch sizes differ:", x.shape(), y.shape());
  }
  return matmul(x, y);
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  Op op("matmul", Cast::low);
  Tensor x = op.in(a), y = op.in(b);
  check_types(op, x, y);
  check<ShapeError>(x.dim() > 0 && y.dim() > 0, "needs at least one dimension:", x.shape(),
                    y.shape(), "- multiply a number with *");
  check_inner(x, y);
  if (x.dim() > 1 && y.dim() > 1) return product(op, x, y);
  const bool row = x.dim() == 1, column = y.dim() == 1;
  if (row) x = unsqueeze(x, 0);
  if (column) y = unsqueeze(y, 1);
  Tensor c = product(op, x, y);
  if (column) c = squeeze(c, -1);
  return row ? squeeze(c, column ? -1 : -2) : c;
}

Tensor mm(const Tensor& a, const Tensor& b) { return checked_product("mm", a, b, 2, 2); }
Tensor bmm(const Tensor& a, const Tensor& b) { return checked_product("bmm", a, b, 3, 3); }
Tensor mv(const Tensor& a, const Tensor& b) { return checked_product("mv", a, b, 2, 1); }
Tensor dot(const Tensor& a, const Tensor& b) { return checked_product("dot", a, b, 1, 1); }

Tensor outer(const Tensor& a, const Tensor& b) {
  Op op("outer");
  const Tensor x = op.in(a), y = op.in(b);
  check<ShapeError>(x.dim() == 1 && y.dim() == 1, "takes two vectors, got", x.shape(), y.shape());
  return unsqueeze(x, 1) * y;
}

// y = x w^T + b    dx = dy w    dw = dy^T x    db = sum of dy's rows
Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  Op op("linear", Cast::low);
  check(weight.defined(), "the weight is undefined");
  const Tensor x = op.in(input), w = op.in(weight);
  check<ShapeError>(w.dim() == 2, "weight is [out,in], got", w.shape());
  check<ShapeError>(x.dim() > 0 && x.size(-1) == w.size(1), "input of shape", x.shape(),
                    "does not fit weight [out,in] of", w.shape());
  check_types(op, x, w);
  Tensor b;
  if (bias.defined()) {
    b = op.in(bias);
    check_types(op, x, b);
    check<ShapeError>(b.dim() == 1 && b.size(0) == w.size(0), "bias of shape", b.shape(),
                      "does not fit weight [out,in] of", w.shape());
  }
  Shape shape = x.shape();
  shape[shape.rank() - 1] = w.size(0);
  Tensor y = empty(shape, x.options());

  // The kernel multiplies matrices: a vector is one row, the weight is read transposed.
  const Tensor rows =
      x.dim() == 1 ? alias(x, {1, x.size(0)}, {x.size(0), x.stride(0)}, x.offset()) : x;
  const Tensor out = x.dim() == 1 ? alias(y, {1, y.size(0)}, {y.size(0), 1}, y.offset()) : y;
  const Shape w_t_shape{w.size(1), w.size(0)}, w_t_strides{w.stride(1), w.stride(0)};
  View w_t = w.read();
  w_t.shape_ptr = &w_t_shape;
  w_t.stride_ptr = &w_t_strides;
  on(x.device(), [&](auto device) {
    const View addend = b.defined() ? b.read() : View{};
    kernels::matmul(device, rows.read(), w_t, out.write(), b.defined() ? &addend : nullptr);
  });

  const auto backward = [x = save_for(x, w), w = save_for(w, x)](const Tensor& dy,
                                                                 Needs needs) -> Grads {
    Grads grads(3);
    if (needs[0]) grads[0] = matmul(dy, w.get());
    if (needs[1]) grads[1] = matmul(t(as_rows(dy)), as_rows(x.get()));
    if (needs[2]) grads[2] = sum(as_rows(dy), 0);
    return grads;
  };
  if (b.defined()) return op.record(y, {x, w, b}, backward);
  return op.record(y, {x, w}, [backward](const Tensor& dy, Needs needs) -> Grads {
    Grads grads = backward(dy, needs);
    grads.pop_back();
    return grads;
  });
}

// A factor in the operands' own type: a fraction would make floats out of integers, and round them.
Scalar factor_for(const Tensor& x, const char* name, double value) {
  if (x.is_floating()) return value;
  check<DTypeError>(value == std::floor(value) && std::abs(value) <= 0x1p53, name,
                    "must be a whole number for operands of type", x.dtype(), "but is", value);
  return static_cast<int64_t>(value);
}

// y = input + a b    dinput = dy    da = dy b^T    db = a^T dy
Tensor addmm(const Tensor& input, const Tensor& a, const Tensor& b, double beta, double alpha) {
  Op op("addmm", Cast::low);
  const Tensor x = op.in(a), y = op.in(b), extra = op.in(input);
  check_types(op, x, y);
  check_types(op, x, extra);
  check<ShapeError>(x.dim() == 2 && y.dim() == 2, "takes matrices, got", x.shape(), y.shape());
  check_inner(x, y);
  const Shape shape{x.size(0), y.size(1)};
  check<ShapeError>(broadcast_shapes(extra.shape(), shape) == shape, "input of shape",
                    extra.shape(), "does not broadcast to", shape);
  const Scalar by_input = factor_for(x, "beta", beta), by_product = factor_for(x, "alpha", alpha);
  if (beta == 0) return alpha == 1 ? matmul(x, y) : matmul(x, y) * by_product;
  if (beta != 1 || alpha != 1) return extra * by_input + matmul(x, y) * by_product;
  Tensor c = empty(shape, x.options());
  on(x.device(), [&](auto device) {
    const View addend = extra.read();
    kernels::matmul(device, x.read(), y.read(), c.write(), &addend);
  });
  return op.record(
      c, {extra, x, y},
      [x = save_for(x, y), y = save_for(y, x)](const Tensor& dc, Needs needs) -> Grads {
        Tensor dx, dy;
        if (needs[1]) dx = matmul(dc, t(y.get()));
        if (needs[2]) dy = matmul(t(x.get()), dc);
        return {dc, dx, dy};
      });
}

}  // namespace tg
