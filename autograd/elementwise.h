// What elementwise operators share: the dtype, shape and memory layout of their results.
#pragma once
#include "tapegrad/autograd/op.h"

namespace tg {

// The dtype in which two tensors meet. As promote(), but a tensor without dimensions counts only
// by its category: f32[3] with f64[] stays f32, i32[3] with f32[] becomes f32.
DType result_type(const Tensor& a, const Tensor& b);

// Memory for a result of the broadcast shape. It is laid out as the first operand of that shape
// that has no gaps, so that channels-last stays channels-last.
Tensor empty_result(const Tensor& a, const Tensor& b, DType dtype);

// DTypeError if one operand of a difference is bool, as in PyTorch: what is meant is seldom a
// number.
void check_difference(DType a, DType b);

// Two operands of an operator: defined, on one device, of one dtype. What needs no cast is used
// where it is.
class Operands {
 public:
  Operands(const Op& op, const Tensor& a, const Tensor& b) : Operands(op, a, b, nullptr) {}
  // With the dtype that they shall have, from the one in which they meet.
  Operands(const Op& op, const Tensor& a, const Tensor& b, DType (*wanted)(DType));
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;
  const Tensor& a() const { return *a_; }
  const Tensor& b() const { return *b_; }
  DType dtype() const { return a_->dtype(); }

 private:
  const Tensor *a_, *b_;
  Tensor cast_a_, cast_b_;
};

}  // namespace tg
