// What a kernel sees of a tensor: pointer, dtype, shape, strides. Borrowed: valid during the call.
#pragma once
#include <cstdint>

#include "tapegrad/core/dtype.h"
#include "tapegrad/core/shape.h"

namespace tg {

// True if elements lie in row-major order without gaps (dimensions of size 1 do not count).
bool is_contiguous(const Shape& shape, const Shape& strides);
// True for rank 4 with channels next to each other, then width, height, batch, without gaps.
bool is_channels_last(const Shape& shape, const Shape& strides);
// True if some permutation of the dimensions is contiguous: no gaps, no overlap.
bool is_dense(const Shape& shape, const Shape& strides);

// Strides are in elements and may be 0 (broadcast) or negative never.
template <class Pointer>
struct BasicView {
  Pointer data = nullptr;
  DType dtype = DType::f32;
  const Shape* shape_ptr = nullptr;
  const Shape* stride_ptr = nullptr;
  int64_t numel = 0;

  const Shape& shape() const { return *shape_ptr; }
  const Shape& strides() const { return *stride_ptr; }
  int rank() const { return shape_ptr->rank(); }
  // Not checked, for loops over 0 <= i < rank().
  int64_t size(int i) const { return shape_ptr->begin()[i]; }
  int64_t stride(int i) const { return stride_ptr->begin()[i]; }
  bool is_contiguous() const { return tg::is_contiguous(shape(), strides()); }
  bool is_channels_last() const { return tg::is_channels_last(shape(), strides()); }
};

struct View : BasicView<const void*> {
  template <class T>
  const T* as() const {
    return static_cast<const T*>(data);
  }
};

struct MutView : BasicView<void*> {
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  operator View() const { return View{{data, dtype, shape_ptr, stride_ptr, numel}}; }
};

}  // namespace tg
