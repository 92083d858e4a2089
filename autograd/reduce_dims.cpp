#include "tapegrad/autograd/reduce_dims.h"

#include "tapegrad/autograd/ops/comparison.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/views.h"

namespace tg {

ReduceDims::ReduceDims(const Tensor& x, const std::vector<int64_t>& dims)
    : full_(x.shape()), kept_(x.shape()) {
  int rank = full_.rank();
  if (dims.empty()) bits_ = (uint32_t(1) << rank) - 1;
  for (int64_t dim : dims) {
    uint32_t bit = uint32_t(1) << wrap_dim(dim, rank);
    check<ValueError>(!(bits_ & bit), "dim", dim, "is named twice");
    if (rank > 0) bits_ |= bit;
  }
  for (int d = 0; d < rank; ++d)
    if (reduced(d)) kept_[d] = 1;
}

int64_t ReduceDims::count() const {
  int64_t n = 1;
  for (int d = 0; d < full_.rank(); ++d)
    if (reduced(d)) n *= full_[d];
  return n;
}

std::vector<int64_t> ReduceDims::dims() const {
  std::vector<int64_t> list;
  for (int d = 0; d < full_.rank(); ++d)
    if (reduced(d)) list.push_back(d);
  return list;
}

Tensor ReduceDims::reduce(kernels::Reduce how, const Tensor& x, DType dtype, double divisor) const {
  Tensor y = empty(kept_, {dtype, x.device()});
  on(x.device(), [&](auto device) { kernels::reduce(device, how, x.read(), y.write(), divisor); });
  return y;
}

Tensor ReduceDims::find(const Tensor& x, const Tensor& value, int64_t dim) const {
  Tensor place = empty(kept_, {i64, x.device()});
  if (full_.rank() == 0) return zero_(place);
  on(x.device(), [&](auto device) {
    kernels::find_first(device, x.read(), value.read(), place.write(), int(dim));
  });
  return place;
}

Tensor ReduceDims::shaped(const Tensor& kept, bool keepdim) const {
  if (keepdim || full_.rank() == 0) return kept;
  Shape shape, strides;
  for (int d = 0; d < full_.rank(); ++d) {
    if (reduced(d)) continue;
    shape.push_back(full_[d]);
    strides.push_back(kept.strides()[d]);
  }
  return alias(kept, shape, strides, kept.offset());
}

Tensor ReduceDims::kept(const Tensor& dy) const {
  return dy.shape() == kept_ ? dy : reshape(dy, kept_);
}

Tensor ReduceDims::stretched(const Tensor& dy) const { return expand(kept(dy), full_); }

Tensor ReduceDims::is_place(const Tensor& place, int64_t dim) const {
  if (full_.rank() == 0) return eq(place, 0);
  Shape line = Shape::filled(full_.rank(), 1);
  line[int(dim)] = full_[int(dim)];
  Tensor positions = view(arange(full_[int(dim)], {i64, place.device()}), line);
  return eq(kept(place), positions);
}

}  // namespace tg
