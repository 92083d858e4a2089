// New tensors, copies and casts.
#pragma once
#include <initializer_list>
#include <vector>

#include "tapegrad/core/tensor.h"

namespace tg {

Tensor zeros(const Shape& shape, TensorOptions options = {});
Tensor ones(const Shape& shape, TensorOptions options = {});
Tensor full(const Shape& shape, Scalar value, TensorOptions options = {});
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);
Tensor full_like(const Tensor& x, Scalar value);
// start, start + step, ... below end.
Tensor arange(Scalar start, Scalar end, Scalar step, TensorOptions options);
Tensor arange(int64_t end, TensorOptions options = {i64});
Tensor linspace(double start, double end, int64_t steps, TensorOptions options = {});
Tensor eye(int64_t n, TensorOptions options = {});
// Values in row-major order.
template <class T>
Tensor tensor(const std::vector<T>& values, const Shape& shape, TensorOptions options);
template <class T>
Tensor tensor(const std::vector<T>& values, const Shape& shape) {
  return tensor(values, shape, TensorOptions(dtype_of<T>()));
}
// tensor({1, 2.5}) has shape [2], tensor({{1.0}, {2.0}}) has [2,1]. The element types differ so
// that a row of one number is a row and no number in braces.
Tensor tensor(std::initializer_list<Scalar> values, TensorOptions options = {});
Tensor tensor(std::initializer_list<std::initializer_list<double>> rows,
              TensorOptions options = {});
Tensor scalar_tensor(Scalar value, TensorOptions options = {});  // rank 0

// The same values in another dtype: float to integer truncates, to bool is != 0. Differentiable
// between float types. Shares x when nothing changes.
Tensor cast(const Tensor& x, DType dtype);
Tensor clone(const Tensor& x);
Tensor contiguous(const Tensor& x);
// A copy of [N,C,H,W] with channels next to each other (itself if it is).
Tensor channels_last(const Tensor& x);

// x[...] = source, broadcast and cast to x's shape and dtype.
const Tensor& copy_(const Tensor& x, const Tensor& source);
const Tensor& fill_(const Tensor& x, Scalar value);
const Tensor& zero_(const Tensor& x);

}  // namespace tg
