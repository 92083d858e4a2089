#include "tapegrad/autograd/ops/views.h"

#include <algorithm>

#include "tapegrad/autograd/geometry.h"
#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/storage_moves.h"

namespace tg {
namespace {

Tensor alias(const Tensor& x, Geometry g) {
  normalize_strides(g);
  return alias(x, g.shape, g.strides, g.offset);
}

// A view that shows every element of x exactly once, so that its gradient is the same rearrangement
// backwards.
template <class F>
Tensor whole_view(const Op& op, const Tensor& x, const Geometry& g, F backward) {
  return op.record_view(alias(x, g), x, std::move(backward));
}

// A view that shows part of x (or parts twice): map says which, for any layout of x. The gradient
// is 0 elsewhere.
template <class F>
Tensor part_view(const Op& op, const Tensor& x, F map) {
  return op.record_view(
      alias(x, map(geometry_of(x))), x,
      [shape = x.shape(), strides = x.strides(), map](const Tensor& dy, Needs) -> Grads {
        Geometry whole{shape, is_dense(shape, strides) ? strides : contiguous_strides(shape)};
        return {embed(dy, whole, map(whole))};
      });
}

// Fills in a size of -1 and checks the count.
Shape complete(const Shape& wanted, const Tensor& x) {
  Shape shape = wanted;
  int open = -1;
  int64_t known = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == -1) {
      check<ShapeError>(open < 0, "only one size may be -1, got", wanted);
      open = i;
      continue;
    }
    check<ShapeError>(shape[i] >= 0, "a size is negative:", wanted);
    check<ShapeError>(!__builtin_mul_overflow(known, shape[i], &known), "too many elements in",
                      wanted);
  }
  if (open >= 0) {
    check<ShapeError>(known != 0, "-1 could be any size beside a size of 0:", wanted, "from",
                      x.shape());
    check<ShapeError>(x.numel() % known == 0, "shape", wanted, "does not hold the", x.numel(),
                      "elements of", x.shape());
    shape[open] = x.numel() / known;
  } else {
    check<ShapeError>(known == x.numel(), "shape", wanted, "does not hold the", x.numel(),
                      "elements of", x.shape());
  }
  return shape;
}

Tensor viewed(const Op& op, const Tensor& x, const Shape& shape, const Shape& strides) {
  return whole_view(
      op, x, {shape, strides, x.offset()},
      [from = x.shape()](const Tensor& dy, Needs) -> Grads { return {reshape(dy, from)}; });
}

}  // namespace

Tensor reshape(const Tensor& input, const Shape& wanted) {
  Op op("reshape");
  Tensor x = op.in(input);
  Shape shape = complete(wanted, x), strides;
  if (view_strides(x.shape(), x.strides(), shape, &strides)) return viewed(op, x, shape, strides);
  return viewed(op, contiguous(x), shape, contiguous_strides(shape));
}

Tensor view(const Tensor& input, const Shape& wanted) {
  Op op("view");
  Tensor x = op.in(input);
  Shape shape = complete(wanted, x), strides;
  if (!view_strides(x.shape(), x.strides(), shape, &strides)) {
    const char* why = x.is_channels_last()
                          ? "the tensor is channels-last: use reshape, which copies;"
                          : "only a copy can show it so: use reshape;";
    fail<ShapeError>(why, "shape", x.shape(), "strides", x.strides(), "as", shape);
  }
  return viewed(op, x, shape, strides);
}

Tensor flatten(const Tensor& input, int64_t start_dim, int64_t end_dim) {
  Op op("flatten");
  const Tensor& x = input;
  check(x.defined(), "an input is undefined");
  int first = int(op.wrap_dim(start_dim, x)), last = int(op.wrap_dim(end_dim, x));
  check<IndexError>(first <= last, "start_dim", start_dim, "comes after end_dim", end_dim);
  if (x.dim() == 0) return reshape(x, {1});
  if (first == last) return x;
  Shape shape;
  for (int i = 0; i < x.dim(); ++i) {
    if (i <= first || i > last)
      shape.push_back(x.shape()[i]);
    else
      shape[first] *= x.shape()[i];
  }
  return reshape(x, shape);
}

Tensor squeeze(const Tensor& input) {
  Op op("squeeze");
  Tensor x = op.in(input);
  Geometry g{{}, {}, x.offset()};
  for (int i = 0; i < x.dim(); ++i) {
    if (x.shape()[i] == 1) continue;
    g.shape.push_back(x.shape()[i]);
    g.strides.push_back(x.strides()[i]);
  }
  return viewed(op, x, g.shape, g.strides);
}

Tensor squeeze(const Tensor& input, int64_t dim) {
  Op op("squeeze");
  Tensor x = op.in(input);
  int d = int(op.wrap_dim(dim, x));
  Geometry g = geometry_of(x);
  if (x.dim() > 0 && g.shape[d] == 1) {
    g.shape.erase(d);
    g.strides.erase(d);
  }
  return viewed(op, x, g.shape, g.strides);
}

Tensor unsqueeze(const Tensor& input, int64_t dim) {
  Op op("unsqueeze");
  Tensor x = op.in(input);
  int d = int(tg::wrap_dim(dim, x.dim() + 1));
  Geometry g = geometry_of(x);
  g.shape.insert(d, 1);
  g.strides.insert(d, 1);
  return viewed(op, x, g.shape, g.strides);
}

Tensor transpose(const Tensor& input, int64_t dim0, int64_t dim1) {
  Op op("transpose");
  Tensor x = op.in(input);
  int a = int(op.wrap_dim(dim0, x)), b = int(op.wrap_dim(dim1, x));
  Geometry g = geometry_of(x);
  if (x.dim() > 0) {
    std::swap(g.shape[a], g.shape[b]);
    std::swap(g.strides[a], g.strides[b]);
  }
  return whole_view(op, x, g,
                    [a, b](const Tensor& dy, Needs) -> Grads { return {transpose(dy, a, b)}; });
}

Tensor t(const Tensor& x) {
  check(x.defined(), "t: an input is undefined");
  check<ShapeError>(x.dim() <= 2, "t: needs at most 2 dimensions, got", x.shape(),
                    "; use transpose or permute");
  return x.dim() < 2 ? x : transpose(x, 0, 1);
}

Tensor permute(const Tensor& input, const std::vector<int64_t>& dims) {
  Op op("permute");
  Tensor x = op.in(input);
  int rank = int(x.dim());
  check<ShapeError>(int(dims.size()) == rank, "needs one entry for each of the", rank,
                    "dimensions, got", Shape(dims));
  Geometry g = geometry_of(x);
  Shape inverse = Shape::filled(rank, -1);
  for (int i = 0; i < rank; ++i) {
    int d = int(op.wrap_dim(dims[size_t(i)], x));
    check<ShapeError>(inverse[d] < 0, "dim", d, "is named twice in", Shape(dims));
    inverse[d] = i;
    g.shape[i] = x.shape()[d];
    g.strides[i] = x.strides()[d];
  }
  return whole_view(op, x, g, [inverse](const Tensor& dy, Needs) -> Grads {
    return {permute(dy, std::vector<int64_t>(inverse.begin(), inverse.end()))};
  });
}

// The engine sums the gradient down to x's shape.
Tensor expand(const Tensor& input, const Shape& wanted) {
  Op op("expand");
  Tensor x = op.in(input);
  Shape shape = wanted;
  int shift = shape.rank() - int(x.dim());
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == -1 && i >= shift) shape[i] = x.shape()[i - shift];
    check<ShapeError>(shape[i] >= 0, "a size is negative, or -1 for a new dimension:", wanted);
  }
  Shape strides = expanded_strides(x.shape(), x.strides(), shape);
  return whole_view(op, x, {shape, strides, x.offset()},
                    [](const Tensor& dy, Needs) -> Grads { return {dy}; });
}

Tensor slice(const Tensor& input, int64_t dim, int64_t start, int64_t end, int64_t step) {
  Op op("slice");
  Tensor x = op.in(input);
  check<ShapeError>(x.dim() > 0, "a tensor of rank 0 cannot be sliced");
  int d = int(op.wrap_dim(dim, x));
  check<ValueError>(step >= 1, "step must be 1 or more, got", step);
  int64_t n = x.shape()[d];
  auto clip = [n](int64_t i) { return i < 0 ? std::max<int64_t>(i + n, 0) : std::min(i, n); };
  int64_t first = clip(start), last = std::max(clip(end), first);
  int64_t count = last == first ? 0 : (last - first - 1) / step + 1;
  return part_view(op, x, [d, first, count, step](Geometry g) {
    g.offset += count > 0 ? first * g.strides[d] : 0;
    g.shape[d] = count;
    if (count > 1) g.strides[d] *= step;
    return g;
  });
}

Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  Scope scope("narrow");
  check(x.defined(), "an input is undefined");
  check<ShapeError>(x.dim() > 0, "a tensor of rank 0 cannot be narrowed");
  dim = wrap_dim(dim, x.dim());
  int64_t n = x.size(dim), first = start < 0 ? start + n : start;
  check<IndexError>(length >= 0 && first >= 0 && first <= n && length <= n - first, "start", start,
                    "and length", length, "do not fit dim", dim, "of size", n);
  return slice(x, dim, first, first + length);
}

Tensor select(const Tensor& input, int64_t dim, int64_t index) {
  Op op("select");
  Tensor x = op.in(input);
  check<IndexError>(x.dim() > 0, "a tensor of rank 0 cannot be indexed");
  int d = int(op.wrap_dim(dim, x));
  int64_t n = x.shape()[d];
  check<IndexError>(index >= -n && index < n, "index", index, "is out of range for dim", d,
                    "of size", n);
  int64_t at = index < 0 ? index + n : index;
  return part_view(op, x, [d, at](Geometry g) {
    g.offset += at * g.strides[d];
    g.shape.erase(d);
    g.strides.erase(d);
    return g;
  });
}

Tensor unfold(const Tensor& input, int64_t dim, int64_t size, int64_t step) {
  Op op("unfold");
  Tensor x = op.in(input);
  int d = int(op.wrap_dim(dim, x));
  int64_t n = x.dim() > 0 ? x.shape()[d] : 1;
  check<ValueError>(size >= 0 && step >= 1, "size must be 0 or more and step 1 or more, got", size,
                    step);
  check<ShapeError>(size <= n, "a window of", size, "is longer than dim", d, "of size", n);
  int64_t windows = (n - size) / step + 1;
  return part_view(op, x, [d, size, step, windows](Geometry g) {
    if (g.shape.rank() == 0) {  // its one element is the one window
      g.shape.push_back(size);
      g.strides.push_back(1);
      return g;
    }
    int64_t stride = g.strides[d];
    g.shape[d] = windows;
    g.strides[d] = stride * step;
    g.shape.push_back(size);
    g.strides.push_back(stride);
    return g;
  });
}

Tensor diagonal(const Tensor& input, int64_t offset, int64_t dim0, int64_t dim1) {
  Op op("diagonal");
  Tensor x = op.in(input);
  check<ShapeError>(x.dim() >= 2, "needs 2 dimensions or more, got", x.shape());
  int a = int(op.wrap_dim(dim0, x)), b = int(op.wrap_dim(dim1, x));
  check<ShapeError>(a != b, "dim0 and dim1 are both", a);
  // No sum of sizes and offset may overflow: far offsets see nothing.
  int64_t rows = x.shape()[a], columns = x.shape()[b];
  int64_t off = std::max(std::min(offset, columns), -rows);
  int64_t count = std::max<int64_t>(
      off >= 0 ? std::min(rows, columns - off) : std::min(rows + off, columns), 0);
  return part_view(op, x, [a, b, off, count](Geometry g) {
    int64_t sa = g.strides[a], sb = g.strides[b];
    if (count > 0) g.offset += off >= 0 ? off * sb : -off * sa;
    for (int d : {std::max(a, b), std::min(a, b)}) {
      g.shape.erase(d);
      g.strides.erase(d);
    }
    g.shape.push_back(count);
    g.strides.push_back(sa + sb);
    return g;
  });
}

Tensor as_strided(const Tensor& input, const Shape& shape, const Shape& strides, int64_t offset) {
  Op op("as_strided");
  Tensor x = op.in(input);
  check<ShapeError>(shape.rank() == strides.rank(), "shape", shape, "and strides", strides,
                    "differ in rank");
  bool fits = offset >= 0;
  int64_t last = offset;
  bool any = true;
  for (int64_t size : shape) any = any && size != 0;
  for (int i = 0; i < shape.rank(); ++i) {
    check<ShapeError>(shape[i] >= 0 && strides[i] >= 0, "negative size or stride:", shape, strides);
    int64_t reach;
    if (any)
      fits = fits && !__builtin_mul_overflow(shape[i] - 1, strides[i], &reach) &&
             !__builtin_add_overflow(last, reach, &last);
  }
  int64_t room = int64_t(x.impl()->storage->bytes / size_of(x.dtype()));
  check<ShapeError>(fits && (any ? last < room : offset <= room), "shape", shape, "strides",
                    strides, "offset", offset, "reach outside of the storage of", room, "elements");
  Geometry to{shape, strides, offset};
  normalize_strides(to);
  return op.record_view(alias(x, to), x,
                        [from = geometry_of(x), to](const Tensor& dy, Needs) -> Grads {
                          return {as_strided_backward(dy, from, to)};
                        });
}

}  // namespace tg
