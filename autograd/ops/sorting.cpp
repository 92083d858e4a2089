#include "tapegrad/autograd/ops/sorting.h"

#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/indexing.h"
#include "tapegrad/kernels/sort.h"

namespace tg {
namespace {

// {values, indices}    dx = zeros with dvalues at indices
std::pair<Tensor, Tensor> recorded(const Op& op, const Tensor& x, int dim, Tensor values,
                                   const Tensor& indices) {
  std::vector<Tensor> ys = op.record(
      {std::move(values), indices}, {x},
      [dim, shape = x.shape(), at = Saved::plain(indices)](const Grads& dys, Needs) -> Grads {
        return {scatter_add(zeros(shape, dys[0].options()), dim, at.get(), dys[0])};
      });
  return {ys[0], ys[1]};
}

}  // namespace

std::pair<Tensor, Tensor> sort(const Tensor& input, int64_t dim, bool descending) {
  Op op("sort");
  Tensor x = op.in(input);
  int d = int(op.wrap_dim(dim, x));
  Tensor values = empty(x.shape(), x.options());
  Tensor indices = empty(x.shape(), {i64, x.device()});
  on(x.device(), [&](auto device) {
    kernels::sort(device, x.read(), d, descending, values.write(), indices.write());
  });
  return recorded(op, x, d, values, indices);
}

Tensor argsort(const Tensor& x, int64_t dim, bool descending) {
  NoGradGuard no_grad;
  return sort(x, dim, descending).second;
}

std::pair<Tensor, Tensor> topk(const Tensor& input, int64_t k, int64_t dim, bool largest) {
  Op op("topk");
  Tensor x = op.in(input);
  int d = int(op.wrap_dim(dim, x));
  Shape shape = x.shape();
  int64_t n = x.dim() > 0 ? shape[d] : 1;
  check<ValueError>(k >= 0 && k <= n, "k =", k, "of dim", d, "of size", n);
  if (x.dim() > 0) shape[d] = k;
  check<ValueError>(x.dim() > 0 || k == 1, "k must be 1 for a tensor of rank 0, got", k);
  Tensor values = empty(shape, x.options());
  Tensor indices = empty(shape, {i64, x.device()});
  on(x.device(), [&](auto device) {
    kernels::topk(device, x.read(), d, largest, values.write(), indices.write());
  });
  return recorded(op, x, d, values, indices);
}

}  // namespace tg
