#include "tapegrad/autograd/ops/embedding.h"

#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops/comparison.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/indexing.h"
#include "tapegrad/autograd/ops/views.h"
#include "tapegrad/kernels/embedding.h"

namespace tg {
namespace {

// dweight[r] = sum of dy[i] over indices[i] == r. Linear in dy: for a gradient g of dweight,
// towards dy: g[indices], and 0 where the padding row was skipped.
Tensor embedding_backward(const Tensor& gradient, const Tensor& indices, int64_t rows,
                          int64_t padding) {
  Op op("embedding_backward");
  const Tensor dy = contiguous(gradient);
  Tensor dweight = empty({rows, dy.size(-1)}, dy.options());
  on(dy.device(), [&](auto device) {
    kernels::embedding_backward(device, indices.read(), dy.read(), dweight.write(), padding);
  });
  return op.record(dweight, {dy},
                   [indices = Saved::plain(indices), padding](const Tensor& g, Needs) -> Grads {
                     const Tensor at = indices.get();
                     Tensor to_dy = embedding(at, g);
                     if (padding >= 0)
                       to_dy = masked_fill(to_dy, unsqueeze(eq(at, padding), -1), 0);
                     return {to_dy};
                   });
}

}  // namespace

// y[i] = weight[indices[i]]    dweight[r] = sum of dy[i] over indices[i] == r
Tensor embedding(const Tensor& indices, const Tensor& weight_in,
                 std::optional<int64_t> padding_index) {
  Op op("embedding");
  const Tensor in = op.in(weight_in);
  check(indices.defined(), "the indices are undefined");
  op.same_device(indices, in);
  check<DTypeError>(is_integral(indices.dtype()), "indices must be integers, got", indices.dtype());
  check<ShapeError>(in.dim() == 2, "weight must be [count,dim], got", in.shape());
  const int64_t rows = in.size(0);
  int64_t padding = -1;
  if (padding_index) {
    padding = *padding_index < 0 ? *padding_index + rows : *padding_index;
    check<IndexError>(padding >= 0 && padding < rows, "padding_index", *padding_index,
                      "is outside of the", rows, "rows of weight");
  }
  const Tensor weight = contiguous(in);
  Tensor at = contiguous(cast(indices, i64));
  Shape shape = at.shape();
  shape.push_back(in.size(1));
  Tensor y = empty(shape, in.options());
  on(in.device(),
     [&](auto device) { kernels::embedding(device, at.read(), weight.read(), y.write()); });
  return op.record(y, {weight},
                   [at = Saved::plain(at), rows, padding](const Tensor& dy, Needs) -> Grads {
                     return {embedding_backward(dy, at.get(), rows, padding)};
                   });
}

}  // namespace tg
