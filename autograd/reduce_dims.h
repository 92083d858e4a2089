// Which dimensions a reduction takes away, and the shapes that follow.
#pragma once
#include <vector>

#include "tapegrad/core/tensor.h"
#include "tapegrad/kernels/reduce.h"

namespace tg {

class ReduceDims {
 public:
  // The dimensions of x, negative ones counted from the end; all if there are none. ValueError for
  // one that comes twice.
  ReduceDims(const Tensor& x, const std::vector<int64_t>& dims);

  // Elements that go into one result.
  int64_t count() const;
  std::vector<int64_t> dims() const;

  // The kernel's result: x's rank, size 1 where something was reduced.
  Tensor reduce(kernels::Reduce how, const Tensor& x, DType dtype, double divisor = 1) const;
  // The first places of `value` in x along dim, of the same shape.
  Tensor find(const Tensor& x, const Tensor& value, int64_t dim) const;
  // `kept` as the caller wants it: as it is, or without the reduced dimensions. No history.
  Tensor shaped(const Tensor& kept, bool keepdim) const;

  // The way back, for gradients and recorded: a result in either shape, with the reduced
  // dimensions of size 1, or stretched to x's shape without a copy.
  Tensor kept(const Tensor& dy) const;
  Tensor stretched(const Tensor& dy) const;
  // Where along dim `place` (of either shape) points to, as a bool of x's shape.
  Tensor is_place(const Tensor& place, int64_t dim) const;

 private:
  bool reduced(int d) const { return bits_ >> d & 1; }
  Shape full_, kept_;
  uint32_t bits_ = 0;
};

}  // namespace tg
