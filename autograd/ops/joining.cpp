#include "tapegrad/autograd/ops/joining.h"

#include <algorithm>

#include "tapegrad/autograd/geometry.h"
#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/views.h"
#include "tapegrad/kernels/copy.h"

namespace tg {
namespace {

// The result is channels-last if every input with elements is (and at least one is not row-major
// at the same time).
Tensor empty_joined(const std::vector<Tensor>& xs, const Shape& shape, TensorOptions options) {
  bool channels_last = shape.rank() == 4, only_so = false;
  for (const Tensor& x : xs) {
    channels_last = channels_last && x.is_channels_last();
    only_so = only_so || !x.is_contiguous();
  }
  if (channels_last && only_so) return empty_strided(shape, channels_last_strides(shape), options);
  return empty(shape, options);
}

std::vector<Tensor> checked(const Op& op, const std::vector<Tensor>& inputs) {
  check<ShapeError>(!inputs.empty(), "needs at least one tensor");
  std::vector<Tensor> xs;
  xs.reserve(inputs.size());
  for (const Tensor& input : inputs) {
    xs.push_back(op.in(input));
    op.same_device(xs[0], xs.back());
  }
  return xs;
}

}  // namespace

// y = [x0 x1 ...]    dxi = the part of dy that is xi
Tensor cat(const std::vector<Tensor>& inputs, int64_t dim) {
  Op op("cat", Cast::widest);
  std::vector<Tensor> xs = checked(op, inputs);
  int d = int(op.wrap_dim(dim, xs[0]));
  Shape shape = xs[0].shape();
  check<ShapeError>(shape.rank() > 0, "tensors of rank 0 have no dimension to join; use stack");
  DType dtype = xs[0].dtype();
  std::vector<int64_t> starts{0};
  for (size_t i = 0; i < xs.size(); ++i) {
    const Shape& own = xs[i].shape();
    bool fits = own.rank() == shape.rank();
    for (int k = 0; fits && k < shape.rank(); ++k) fits = k == d || own[k] == shape[k];
    check<ShapeError>(fits, "shapes differ outside of dim", d, ": tensor 0 has", xs[0].shape(),
                      "but tensor", i, "has", own);
    dtype = promote(dtype, xs[i].dtype());
    int64_t end = 0;
    check<ShapeError>(!__builtin_add_overflow(starts.back(), own[d], &end),
                      "the tensors have more elements in dim", d, "than can be addressed");
    starts.push_back(end);
  }
  shape[d] = starts.back();
  Tensor y = empty_joined(xs, shape, {dtype, xs[0].device()});
  for (size_t i = 0; i < xs.size(); ++i) {
    Tensor part = alias(y, xs[i].shape(), y.strides(), y.offset() + starts[i] * y.strides()[d]);
    on(y.device(), [&](auto device) { kernels::copy(device, xs[i].read(), part.write()); });
  }
  std::vector<DType> dtypes;
  for (const Tensor& x : xs) dtypes.push_back(x.dtype());
  return op.record(y, xs, [d, starts, dtypes](const Tensor& dy, Needs needs) -> Grads {
    Grads grads(dtypes.size());
    for (size_t i = 0; i < dtypes.size(); ++i)
      if (needs[i]) grads[i] = cast(slice(dy, d, starts[i], starts[i + 1]), dtypes[i]);
    return grads;
  });
}

Tensor stack(const std::vector<Tensor>& tensors, int64_t dim) {
  Op op("stack", Cast::widest);
  std::vector<Tensor> xs = checked(op, tensors);
  int64_t d = wrap_dim(dim, xs[0].dim() + 1);
  for (size_t i = 0; i < xs.size(); ++i) {
    check<ShapeError>(xs[i].shape() == xs[0].shape(), "shapes differ: tensor 0 has", xs[0].shape(),
                      "but tensor", i, "has", xs[i].shape());
  }
  for (Tensor& x : xs) x = unsqueeze(x, d);
  return cat(xs, d);
}

std::vector<Tensor> split(const Tensor& x, int64_t size, int64_t dim) {
  Scope scope("split");
  check(x.defined(), "an input is undefined");
  check<ShapeError>(x.dim() > 0, "a tensor of rank 0 cannot be split");
  int64_t n = x.size(dim);
  check<ValueError>(size > 0 || (size == 0 && n == 0), "the size must be 1 or more, got", size);
  std::vector<Tensor> parts;
  int64_t start = 0;
  do {
    parts.push_back(slice(x, dim, start, start + std::min(size, n - start)));
    start += size;
  } while (start < n);
  return parts;
}

std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int64_t dim) {
  Scope scope("split");
  check(x.defined(), "an input is undefined");
  check<ShapeError>(x.dim() > 0, "a tensor of rank 0 cannot be split");
  int64_t n = x.size(dim), left = n;
  for (int64_t size : sizes) {
    check<ShapeError>(size >= 0 && size <= left, "the sizes do not sum to", n, "of dim", dim);
    left -= size;
  }
  check<ShapeError>(left == 0, "the sizes sum to", n - left, "but dim", dim, "has", n);
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (int64_t size : sizes) {
    parts.push_back(slice(x, dim, start, start + size));
    start += size;
  }
  return parts;
}

std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t dim) {
  Scope scope("chunk");
  check(x.defined(), "an input is undefined");
  check<ShapeError>(x.dim() > 0, "a tensor of rank 0 cannot be split");
  check<ValueError>(chunks >= 1, "needs 1 chunk or more, got", chunks);
  int64_t n = x.size(dim);
  if (n == 0) return std::vector<Tensor>(size_t(chunks), slice(x, dim, 0, 0));
  return split(x, (n - 1) / chunks + 1, dim);
}

}  // namespace tg
