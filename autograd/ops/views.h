// Other shapes of the same memory. All share storage and version with x, except reshape and
// flatten where a copy is needed.
#pragma once
#include <vector>

#include "tapegrad/core/tensor.h"

namespace tg {

// One size may be -1. Copies where the strides do not allow a view.
Tensor reshape(const Tensor& x, const Shape& shape);
// As reshape, but raises a ShapeError instead of copying.
Tensor view(const Tensor& x, const Shape& shape);
Tensor flatten(const Tensor& x, int64_t start_dim = 0, int64_t end_dim = -1);
Tensor squeeze(const Tensor& x);  // all dimensions of size 1
Tensor squeeze(const Tensor& x, int64_t dim);
Tensor unsqueeze(const Tensor& x, int64_t dim);
Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1);
Tensor t(const Tensor& x);  // transpose of rank 2; x itself below
Tensor permute(const Tensor& x, const std::vector<int64_t>& dims);
// -1 keeps a size.
Tensor expand(const Tensor& x, const Shape& shape);
// x[.., start:end:step, ..]; start and end may be negative and are clipped; step >= 1.
Tensor slice(const Tensor& x, int64_t dim, int64_t start, int64_t end, int64_t step = 1);
Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length);
Tensor select(const Tensor& x, int64_t dim, int64_t index);
// Windows of `size` every `step` along dim; the window is a new last dimension.
Tensor unfold(const Tensor& x, int64_t dim, int64_t size, int64_t step);
Tensor diagonal(const Tensor& x, int64_t offset = 0, int64_t dim0 = 0, int64_t dim1 = 1);
// Any strides over x's storage; sizes, strides and offset (from the start of the storage) are
// checked against it. The gradient of an element counts every place that shows it.
Tensor as_strided(const Tensor& x, const Shape& shape, const Shape& strides, int64_t offset);

}  // namespace tg
