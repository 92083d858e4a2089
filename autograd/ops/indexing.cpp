#include "tapegrad/autograd/ops/indexing.h"

#include "tapegrad/autograd/geometry.h"
#include "tapegrad/autograd/inplace.h"
#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops/arithmetic.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/views.h"
#include "tapegrad/autograd/scalars.h"
#include "tapegrad/autograd/selection.h"
#include "tapegrad/kernels/copy.h"
#include "tapegrad/kernels/index.h"
#include "tapegrad/kernels/mask.h"

namespace tg {
namespace {

bool is_half(DType t) { return is_floating(t) && size_of(t) == 2; }

// value as a tensor that broadcasts to `shape`: leading dimensions of size 1 may be too many.
Tensor fitting(Tensor value, const Shape& shape) {
  while (value.dim() > shape.rank() && value.size(0) == 1) value = select(value, 0, 0);
  return value;
}

// Index tensors that lie in the memory to be written.
void copy_shared_columns(Selection* s, const Tensor& x) {
  for (auto& c : s->columns) {
    Tensor indices = c.indices.get();
    if (indices.shares_storage(x)) c.indices = Saved::plain(clone(indices));
  }
}

}  // namespace

Tensor index(const Tensor& x, const std::vector<Index>& indices) {
  Scope scope("index");
  Indexed i = resolve(x, indices);
  return i.selection.columns.empty() ? i.view : take(i.view, i.selection);
}

// x[s] = value     dx = dy without s     dvalue = dy[s] where it was not overwritten
// x[s] += value    dx = dy               dvalue = dy[s]
const Tensor& index_put_(const Tensor& x, const std::vector<Index>& indices, const Tensor& input,
                         bool accumulate) {
  Op op("index_put_");
  Indexed i = resolve(x, indices);
  const Tensor& v = i.view;
  Selection& s = i.selection;
  op.same_device(x, input);
  Tensor value = cast(op.in(input), x.dtype());
  if (s.columns.empty()) {
    value = fitting(value, v.shape());
    accumulate ? add_(v, value) : copy_(v, value);
    return x;
  }
  value = fitting(value, s.result_shape(v.shape()));
  if (value.shares_storage(x)) value = clone(value);
  copy_shared_columns(&s, x);
  op.prepare_inplace(v);
  if (accumulate && is_half(v.dtype())) {  // many may meet in one place: add up in f32
    Tensor sums = empty(v.shape(), {f32, v.device()});
    on(v.device(), [&](auto device) { kernels::copy(device, v.read(), sums.write()); });
    NoGradGuard no_grad;
    put(sums, s, cast(value, f32), accumulate);
    on(v.device(), [&](auto device) { kernels::copy(device, sums.read(), v.write()); });
  } else {
    put(v, s, value, accumulate);
  }
  op.record_inplace(v, {v, value}, [s, accumulate](const Tensor& dy, Needs needs) -> Grads {
    Grads grads(2);
    if (needs[0]) grads[0] = accumulate ? dy : without(dy, s);
    if (!needs[1]) return grads;
    grads[1] = take(dy, s);
    if (accumulate) return grads;
    Tensor lost = overwritten(dy.shape(), s, dy.device());
    if (lost.defined()) grads[1] = masked_fill(grads[1], lost, 0);
    return grads;
  });
  return x;
}

// y = x at the indices along dim    dx = zeros with dy added there
Tensor index_select(const Tensor& input, int64_t dim, const Tensor& indices) {
  Op op("index_select");
  Tensor x = op.in(input);
  op.in(indices);
  op.same_device(x, indices);
  check<DTypeError>(is_integral(indices.dtype()), "indices are integers, got", indices.dtype());
  check<ShapeError>(indices.dim() <= 1, "indices have rank 1, got", indices.shape());
  int d = int(op.wrap_dim(dim, x));
  if (x.dim() == 0) {
    check<ShapeError>(indices.numel() == 1, "a tensor of rank 0 takes one index, got",
                      indices.shape());
    return reshape(index_select(reshape(x, {1}), 0, indices), {});
  }
  Tensor flat = reshape(cast(indices, i64), {indices.numel()});
  return take(x, Selection{{{d, Saved::plain(flat), d, /*from_end=*/false}}, flat.shape(), d});
}

namespace {

// What gather and scatter_add ask of x and index; index as i64.
Tensor checked_index(const Op& op, const Tensor& x, int dim, const Tensor& index) {
  op.in(index);
  op.same_device(x, index);
  check<DTypeError>(is_integral(index.dtype()), "the index holds integers, got", index.dtype());
  bool fits = index.dim() == x.dim();
  for (int i = 0; fits && i < x.dim(); ++i) fits = i == dim || index.shape()[i] <= x.shape()[i];
  check<ShapeError>(fits, "the index", index.shape(), "does not fit", x.shape(), "outside of dim",
                    dim);
  return cast(index, i64);
}

// x += source at the index.
void scatter_into(const Tensor& x, int dim, const Tensor& index, const Tensor& source) {
  if (!is_half(x.dtype())) {
    return on(x.device(), [&](auto device) {
      kernels::scatter_add(device, x.write(), dim, index.read(), source.read());
    });
  }
  Tensor sums = empty(x.shape(), {f32, x.device()});
  Tensor values = empty(source.shape(), {f32, x.device()});
  on(x.device(), [&](auto device) {
    kernels::copy(device, x.read(), sums.write());
    kernels::copy(device, source.read(), values.write());
    kernels::scatter_add(device, sums.write(), dim, index.read(), values.read());
    kernels::copy(device, sums.read(), x.write());
  });
}

// The part of source that the index covers.
Tensor checked_source(const Op& op, const Tensor& x, const Tensor& index, const Tensor& source) {
  Tensor s = op.in(source);
  op.same_device(x, s);
  check<DTypeError>(s.dtype() == x.dtype(), "the source is", s.dtype(), "but the tensor",
                    x.dtype());
  bool fits = s.dim() == index.dim();
  for (int i = 0; fits && i < s.dim(); ++i) fits = index.shape()[i] <= s.shape()[i];
  check<ShapeError>(fits, "the index", index.shape(), "is larger than the source", s.shape());
  for (int i = 0; i < s.dim(); ++i)
    if (s.shape()[i] != index.shape()[i]) s = slice(s, i, 0, index.shape()[i]);
  return s;
}

}  // namespace

// y[i] = x[index[i]]    dx = zeros with dy added at index
Tensor gather(const Tensor& input, int64_t dim, const Tensor& index) {
  Op op("gather");
  Tensor x = op.in(input);
  int d = int(op.wrap_dim(dim, x));
  Tensor at = checked_index(op, x, d, index);
  Tensor y = empty(at.shape(), x.options());
  on(y.device(), [&](auto device) { kernels::gather(device, x.read(), d, at.read(), y.write()); });
  return op.record(y, {x},
                   [d, shape = x.shape(), at = Saved::plain(at)](const Tensor& dy, Needs) -> Grads {
                     return {scatter_add(zeros(shape, dy.options()), d, at.get(), dy)};
                   });
}

// y = x; y[index[i]] += source[i]    dx = dy    dsource = dy[index]
Tensor scatter_add(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source) {
  Op op("scatter_add");
  Tensor x = op.in(input);
  int d = int(op.wrap_dim(dim, x));
  Tensor at = checked_index(op, x, d, index);
  Tensor s = checked_source(op, x, at, source);
  Tensor y = empty_like(x);
  on(y.device(), [&](auto device) { kernels::copy(device, x.read(), y.write()); });
  scatter_into(y, d, at, s);
  return op.record(y, {x, s}, [d, at = Saved::plain(at)](const Tensor& dy, Needs needs) -> Grads {
    return {dy, needs[1] ? gather(dy, d, at.get()) : Tensor()};
  });
}

const Tensor& scatter_add_(const Tensor& x, int64_t dim, const Tensor& index,
                           const Tensor& source) {
  Op op("scatter_add_");
  op.in(x);
  int d = int(op.wrap_dim(dim, x));
  Tensor at = checked_index(op, x, d, index);
  Tensor s = checked_source(op, x, at, source);
  if (at.shares_storage(x)) at = clone(at);
  if (s.shares_storage(x)) s = clone(s);
  op.prepare_inplace(x);
  scatter_into(x, d, at, s);
  return op.record_inplace(x, {x, s},
                           [d, at = Saved::plain(at)](const Tensor& dy, Needs needs) -> Grads {
                             return {dy, needs[1] ? gather(dy, d, at.get()) : Tensor()};
                           });
}

namespace {

void check_mask(const Op& op, const Tensor& x, const Tensor& mask) {
  op.in(mask);
  op.same_device(x, mask);
  check<DTypeError>(mask.dtype() == DType::boolean, "the mask must be bool, got", mask.dtype());
}

void fill_masked(const Tensor& x, const Tensor& mask, Scalar value, const Tensor& y) {
  check_fits(value, y.dtype());
  on(y.device(),
     [&](auto device) { kernels::masked_fill(device, x.read(), mask.read(), value, y.write()); });
}

}  // namespace

// y = mask ? value : x    dx = mask ? 0 : dy
Tensor masked_fill(const Tensor& input, const Tensor& mask, Scalar value) {
  Op op("masked_fill");
  op.given(value);
  Tensor x = op.in(input);
  check_mask(op, x, mask);
  Shape shape = broadcast_shapes(x.shape(), mask.shape());
  Tensor y = shape == x.shape() ? empty_like(x) : empty(shape, x.options());
  fill_masked(x, mask, value, y);
  return op.record(y, {x}, [mask = Saved::plain(mask)](const Tensor& dy, Needs) -> Grads {
    return {masked_fill(dy, mask.get(), 0)};
  });
}

const Tensor& masked_fill_(const Tensor& x, const Tensor& mask, Scalar value) {
  Op op("masked_fill_");
  op.given(value);
  op.in(x);
  check_mask(op, x, mask);
  Tensor covers = expanded(mask, x.shape());
  if (mask.shares_storage(x)) covers = clone(covers);
  op.prepare_inplace(x);
  fill_masked(x, covers, value, x);
  return op.record_inplace(x, {x}, [mask = Saved::plain(covers)](const Tensor& dy, Needs) -> Grads {
    return {masked_fill(dy, mask.get(), 0)};
  });
}

Tensor masked_select(const Tensor& input, const Tensor& mask) {
  Op op("masked_select");
  Tensor x = op.in(input);
  check_mask(op, x, mask);
  Shape shape = broadcast_shapes(x.shape(), mask.shape());
  if (shape.rank() == 0) shape = {1};
  return index(expand(x, shape), {expand(mask, shape)});
}

Tensor nonzero(const Tensor& input) {
  Op op("nonzero");
  Tensor x = op.in(input);
  if (!x.is_contiguous()) {
    NoGradGuard no_grad;
    x = contiguous(x);
  }
  Tensor y;
  on(x.device(), [&](auto device) {
    y = empty({kernels::count_nonzero(device, x.read()), x.dim()}, {i64, x.device()});
    kernels::nonzero(device, x.read(), y.write());
  });
  return y;
}

namespace {

// y = x on one side of a diagonal, 0 on the other    dx = the same of dy
Tensor triangle(const char* name, const Tensor& input, int64_t diagonal, bool upper) {
  Op op(name);
  Tensor x = op.in(input);
  check<ShapeError>(x.dim() >= 2, "needs 2 dimensions or more, got", x.shape());
  Tensor y = empty_like(x);
  on(y.device(),
     [&](auto device) { kernels::triangle(device, x.read(), y.write(), diagonal, upper); });
  return op.record(y, {x}, [name, diagonal, upper](const Tensor& dy, Needs) -> Grads {
    return {triangle(name, dy, diagonal, upper)};
  });
}

}  // namespace

Tensor tril(const Tensor& x, int64_t diagonal) { return triangle("tril", x, diagonal, false); }
Tensor triu(const Tensor& x, int64_t diagonal) { return triangle("triu", x, diagonal, true); }

}  // namespace tg
