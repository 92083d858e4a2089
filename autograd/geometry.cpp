#include "tapegrad/autograd/geometry.h"

namespace tg {

Shape expanded_strides(const Shape& from, const Shape& strides, const Shape& to) {
  int shift = to.rank() - from.rank();
  bool fits = shift >= 0;
  for (int i = 0; fits && i < from.rank(); ++i) fits = from[i] == to[i + shift] || from[i] == 1;
  check<ShapeError>(fits, "shape", from, "does not broadcast to", to);
  Shape result = Shape::filled(to.rank(), 0);
  for (int i = 0; i < from.rank(); ++i)
    if (from[i] == to[i + shift]) result[i + shift] = strides[i];
  return result;
}

Tensor expanded(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  return alias(x, shape, expanded_strides(x.shape(), x.strides(), shape), x.offset());
}

// Walks both shapes from the right. A run of dimensions that lie in memory like one dimension can
// be cut anew in any way; the cuts of both shapes must meet at the end of each run.
bool view_strides(const Shape& shape, const Shape& strides, const Shape& wanted, Shape* result) {
  *result = contiguous_strides(wanted);
  if (shape.rank() == 0) return true;
  for (int64_t n : shape)
    if (n == 0) return true;
  const int64_t *size = shape.begin(), *stride = strides.begin(), *want = wanted.begin();
  int w = wanted.rank() - 1;
  int64_t run = 1;  // elements in the run so far
  int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (run == 1) step = stride[i];
    run *= size[i];
    bool ends = i == 0 || (run != 1 && size[i - 1] != 1 && stride[i - 1] != run * step);
    if (!ends) continue;
    int64_t left = run, at = step;
    while (w >= 0 && (left > 1 || want[w] == 1)) {
      if (left % want[w] != 0) return false;
      result->begin()[w] = at;
      at *= want[w];
      left /= want[w];
      --w;
    }
    if (left != 1) return false;
    run = 1;
  }
  return w < 0;
}

int64_t extent(const Shape& shape, const Shape& strides) {
  int64_t last = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 0) return 0;
    last += (shape[i] - 1) * strides[i];
  }
  return last + 1;
}

void check_sides(const Tensor& x) {
  constexpr int64_t kMostPixels = int64_t(1) << 40;
  check<ShapeError>(x.size(2) <= kMostPixels && x.size(3) <= kMostPixels, "images can be at most",
                    kMostPixels, "pixels high and wide, got", x.shape());
}

}  // namespace tg
