#include "tapegrad/autograd/elementwise.h"

#include "tapegrad/autograd/ops/creation.h"

namespace tg {

DType result_type(const Tensor& a, const Tensor& b) {
  DType s = a.dtype(), t = b.dtype();
  bool a_is_number = a.dim() == 0, b_is_number = b.dim() == 0;
  if (s == t) return s;
  if (a_is_number == b_is_number) return promote(s, t);
  DType whole = a_is_number ? t : s, number = a_is_number ? s : t;
  if (is_floating(whole)) return whole;
  return whole == DType::boolean || is_floating(number) ? promote(whole, number) : whole;
}

Tensor empty_result(const Tensor& a, const Tensor& b, DType dtype) {
  if (a.shape() == b.shape()) {
    bool follow_b = !a.is_contiguous() && !is_dense(a.shape(), a.strides());
    return empty_like(follow_b ? b : a, dtype);
  }
  Shape shape = broadcast_shapes(a.shape(), b.shape());
  for (const Tensor* x : {&a, &b})
    if (x->shape() == shape && is_dense(shape, x->strides())) return empty_like(*x, dtype);
  return empty(shape, {dtype, a.device()});
}

void check_difference(DType a, DType b) {
  check<DTypeError>(a != DType::boolean && b != DType::boolean,
                    "bool has no differences; use logical_xor, logical_not, or cast it first");
}

Operands::Operands(const Op& op, const Tensor& a, const Tensor& b, DType (*wanted)(DType))
    : a_(&a), b_(&b) {
  if (!a.defined() || !b.defined()) [[unlikely]]
    fail("an input is undefined");
  op.same_device(a, b);
  DType dtype = a.dtype();
  if (dtype != b.dtype()) dtype = result_type(a, b);
  if (wanted) dtype = wanted(dtype);
  if (a.dtype() != dtype) a_ = &(cast_a_ = cast(a, dtype));
  if (b.dtype() != dtype) b_ = &(cast_b_ = cast(b, dtype));
}

}  // namespace tg
