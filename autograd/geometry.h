// Arithmetic on shape, strides and offset: what a view operator computes, without a tensor.
#pragma once
#include "tapegrad/core/tensor.h"

namespace tg {

struct Geometry {
  Shape shape, strides;
  int64_t offset = 0;
};

inline Geometry geometry_of(const Tensor& x) { return {x.shape(), x.strides(), x.offset()}; }

// The stride of a dimension of size 1 addresses nothing. It is set to what a dense layout would
// have there, so that equal layouts have equal strides.
inline void normalize_strides(Geometry& g) {
  int64_t next = 1;
  for (int i = g.shape.rank() - 1; i >= 0; --i) {
    if (g.shape[i] == 1) g.strides[i] = next;
    next = g.strides[i] * (g.shape[i] > 1 ? g.shape[i] : 1);
  }
}

// x seen as `shape` by repeating dimensions of size 1: a handle for kernels, without history.
// ShapeError if x does not broadcast to it.
Tensor expanded(const Tensor& x, const Shape& shape);

// Strides of g stretched to `shape` (0 where a dimension is repeated).
Shape expanded_strides(const Shape& from, const Shape& strides, const Shape& to);

// Strides that show elements of `shape`/`strides` as `wanted`, in the same order; false if only a
// copy can do that.
bool view_strides(const Shape& shape, const Shape& strides, const Shape& wanted, Shape* result);

// Elements from the first to one past the last that a tensor reaches; 0 if it is empty.
int64_t extent(const Shape& shape, const Shape& strides);

// ShapeError if an image [N,C,H,W] has a side of more than 2^40 pixels: only an expanded view has,
// and sums of sides, padding and steps shall fit 63 bits.
void check_sides(const Tensor& x);

}  // namespace tg
