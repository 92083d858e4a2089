#include "tapegrad/autograd/storage_moves.h"

#include <algorithm>

#include "tapegrad/autograd/inplace.h"
#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops/arithmetic.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/views.h"
#include "tapegrad/kernels/accumulate.h"
#include "tapegrad/kernels/copy.h"

namespace tg {
namespace {

bool is_half(DType t) { return is_floating(t) && size_of(t) == 2; }

void add_into(const Tensor& values, const Tensor& places) {
  on(places.device(), [&](auto device) {
    if (may_overlap_itself(places.shape(), places.strides()))
      kernels::accumulate(device, values.read(), places.write());
    else
      kernels::copy(device, values.read(), places.write());
  });
}

// x itself or a copy with these strides of a dense layout.
Tensor with_strides(const Tensor& x, const Shape& strides) {
  if (x.strides() == strides) return x;
  Op op("with_strides");
  Tensor y = empty_strided(x.shape(), strides, x.options());
  on(y.device(), [&](auto device) { kernels::copy(device, x.read(), y.write()); });
  return op.record(y, {x}, [](const Tensor& dy, Needs) -> Grads { return {dy}; });
}

// Adds dy to zeros at the places of `in` and reads the sums at the places of `out`. Its own
// gradient is the same with the two changed over.
Tensor through_storage(const Tensor& dy, const Geometry& in, const Geometry& out) {
  Op op("as_strided_backward");
  int64_t first = std::min(in.offset, out.offset);
  int64_t end = std::max(in.offset + extent(in.shape, in.strides),
                         out.offset + extent(out.shape, out.strides));
  Tensor flat = zeros({end - first}, dy.options());
  add_into(dy, alias(flat, in.shape, in.strides, in.offset - first));
  Tensor y = alias(flat, out.shape, out.strides, out.offset - first);
  if (y.numel() != flat.numel() || may_overlap_itself(out.shape, out.strides)) {
    Tensor copy = empty(out.shape, dy.options());
    on(y.device(), [&](auto device) { kernels::copy(device, y.read(), copy.write()); });
    y = copy;
  }
  return op.record(y, {dy}, [in, out](const Tensor& g, Needs) -> Grads {
    return {through_storage(g, out, in)};
  });
}

}  // namespace

Tensor embed(const Tensor& dy, const Geometry& whole, const Geometry& part) {
  if (is_half(dy.dtype()) && may_overlap_itself(part.shape, part.strides))
    return cast(embed(cast(dy, f32), whole, part), dy.dtype());
  Op op("view_backward");
  Tensor y = empty_strided(whole.shape, whole.strides, dy.options());
  on(y.device(), [&](auto device) { kernels::fill(device, y.write(), 0); });
  add_into(dy, alias(y, part.shape, part.strides, part.offset));
  return op.record(y, {dy}, [strides = whole.strides, part](const Tensor& g, Needs) -> Grads {
    Tensor laid_out = with_strides(g, strides);
    return {as_strided(laid_out, part.shape, part.strides, laid_out.offset() + part.offset)};
  });
}

Tensor as_strided_backward(const Tensor& dy, const Geometry& from, const Geometry& to) {
  bool shared = may_overlap_itself(from.shape, from.strides);
  if (is_half(dy.dtype()) && (shared || may_overlap_itself(to.shape, to.strides)))
    return cast(as_strided_backward(cast(dy, f32), from, to), dy.dtype());
  Tensor dx = through_storage(dy, to, from);
  if (!shared) return dx;
  return div(dx, through_storage(ones(from.shape, dy.options()), from, from));
}

}  // namespace tg
