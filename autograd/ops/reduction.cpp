#include "tapegrad/autograd/ops/reduction.h"

#include <cmath>

#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops/arithmetic.h"
#include "tapegrad/autograd/ops/comparison.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/unary.h"
#include "tapegrad/autograd/ops/views.h"
#include "tapegrad/autograd/reduce_dims.h"

namespace tg {
namespace {

DType sum_type(DType t) { return is_floating(t) ? t : i64; }
const std::vector<int64_t> kAll;

Tensor sum_over(const Tensor& input, const std::vector<int64_t>& dims, bool keepdim) {
  Op op("sum", Cast::f32);
  Tensor x = op.in(input);
  ReduceDims r(x, dims);
  Tensor y = r.reduce(kernels::Reduce::sum, x, sum_type(x.dtype()));
  return op.record(r.shaped(y, keepdim), {x},
                   [r](const Tensor& dy, Needs) -> Grads { return {r.stretched(dy)}; });
}

Tensor mean_over(const Tensor& input, const std::vector<int64_t>& dims, bool keepdim) {
  Op op("mean", Cast::f32);
  Tensor x = op.in(input);
  check<DTypeError>(x.is_floating(), "needs a float tensor, got", x.dtype(),
                    "; cast it first, or use sum");
  ReduceDims r(x, dims);
  double n = double(r.count());
  Tensor y = r.reduce(kernels::Reduce::sum, x, x.dtype(), n);
  return op.record(r.shaped(y, keepdim), {x},
                   [r, n](const Tensor& dy, Needs) -> Grads { return {r.stretched(dy / n)}; });
}

void check_not_empty(const ReduceDims& r, const Tensor& x) {
  check<ValueError>(r.count() > 0, "an empty range has no largest or smallest element, shape",
                    x.shape());
}

// y = max(x)    dx = dy / k at the k elements that equal y (or are NaN as it is), else 0
Tensor extreme(const char* name, kernels::Reduce how, const Tensor& input,
               const std::vector<int64_t>& dims, bool keepdim) {
  Op op(name);
  Tensor x = op.in(input);
  ReduceDims r(x, dims);
  check_not_empty(r, x);
  Tensor y = r.shaped(r.reduce(how, x, x.dtype()), keepdim);
  return op.record(
      y, {x}, [r, x = Saved::input(x), y = Saved::output(y)](const Tensor& dy, Needs) -> Grads {
        Tensor u = x.get();
        Tensor hit = logical_or(eq(u, r.kept(y.get().detach())), isnan(u));
        Tensor share = r.kept(dy) / cast(sum(hit, r.dims(), /*keepdim=*/true), dy.dtype());
        return {where(hit, share, 0)};
      });
}

// y = x[i], i = the first place of the maximum along dim    dx = dy at i, else 0
std::pair<Tensor, Tensor> extreme_and_place(const char* name, kernels::Reduce how,
                                            const Tensor& input, int64_t dim, bool keepdim) {
  Op op(name);
  Tensor x = op.in(input);
  dim = op.wrap_dim(dim, x);
  ReduceDims r(x, {dim});
  check_not_empty(r, x);
  Tensor value = r.reduce(how, x, x.dtype());
  Tensor place = r.find(x, value, dim);
  Tensor y = op.record(r.shaped(value, keepdim), {x},
                       [r, dim, place = Saved::plain(place)](const Tensor& dy, Needs) -> Grads {
                         return {where(r.is_place(place.get(), dim), r.stretched(dy), 0)};
                       });
  return {y, r.shaped(place, keepdim)};
}

Tensor place_of_extreme(const char* name, kernels::Reduce how, const Tensor& input, int64_t dim,
                        bool keepdim) {
  Op op(name);
  NoGradGuard no_grad;
  Tensor x = op.in(input);
  dim = op.wrap_dim(dim, x);
  ReduceDims r(x, {dim});
  check_not_empty(r, x);
  return r.shaped(r.find(x, r.reduce(how, x, x.dtype()), dim), keepdim);
}
// Over all elements, in logical order.
Tensor place_of_extreme(const char* name, kernels::Reduce how, const Tensor& input) {
  Op op(name);
  NoGradGuard no_grad;
  return place_of_extreme(name, how, reshape(op.in(input), {-1}), 0, false);
}

}  // namespace

// y = sum(x)    dx = dy, stretched to x's shape (no copy)
Tensor sum(const Tensor& x) { return sum_over(x, kAll, false); }
Tensor sum(const Tensor& x, int64_t dim, bool keepdim) { return sum_over(x, {dim}, keepdim); }
Tensor sum(const Tensor& x, const std::vector<int64_t>& dims, bool keepdim) {
  return sum_over(x, dims, keepdim);
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  check(x.defined(), "sum_to: an input is undefined");
  if (x.shape() == shape) return x;
  int extra = int(x.dim()) - shape.rank();
  bool fits = extra >= 0;
  for (int i = 0; fits && i < shape.rank(); ++i)
    fits = shape[i] == 1 || shape[i] == x.shape()[i + extra];
  check<ShapeError>(fits, "sum_to: shape", shape, "does not broadcast to", x.shape());
  std::vector<int64_t> dims;
  for (int i = 0; i < int(x.dim()); ++i)
    if (i < extra || (shape[i - extra] == 1 && x.shape()[i] != 1)) dims.push_back(i);
  Tensor y = dims.empty() ? x : sum_over(x, dims, true);
  return extra > 0 ? view(y, shape) : y;
}

// y = sum(x) / n    dx = dy / n, stretched
Tensor mean(const Tensor& x) { return mean_over(x, kAll, false); }
Tensor mean(const Tensor& x, int64_t dim, bool keepdim) { return mean_over(x, {dim}, keepdim); }
Tensor mean(const Tensor& x, const std::vector<int64_t>& dims, bool keepdim) {
  return mean_over(x, dims, keepdim);
}

Tensor max(const Tensor& x) { return extreme("max", kernels::Reduce::max, x, kAll, false); }
Tensor min(const Tensor& x) { return extreme("min", kernels::Reduce::min, x, kAll, false); }
Tensor amax(const Tensor& x, const std::vector<int64_t>& dims, bool keepdim) {
  return extreme("amax", kernels::Reduce::max, x, dims, keepdim);
}
Tensor amin(const Tensor& x, const std::vector<int64_t>& dims, bool keepdim) {
  return extreme("amin", kernels::Reduce::min, x, dims, keepdim);
}
std::pair<Tensor, Tensor> max(const Tensor& x, int64_t dim, bool keepdim) {
  return extreme_and_place("max", kernels::Reduce::max, x, dim, keepdim);
}
std::pair<Tensor, Tensor> min(const Tensor& x, int64_t dim, bool keepdim) {
  return extreme_and_place("min", kernels::Reduce::min, x, dim, keepdim);
}
Tensor argmax(const Tensor& x) { return place_of_extreme("argmax", kernels::Reduce::max, x); }
Tensor argmin(const Tensor& x) { return place_of_extreme("argmin", kernels::Reduce::min, x); }
Tensor argmax(const Tensor& x, int64_t dim, bool keepdim) {
  return place_of_extreme("argmax", kernels::Reduce::max, x, dim, keepdim);
}
Tensor argmin(const Tensor& x, int64_t dim, bool keepdim) {
  return place_of_extreme("argmin", kernels::Reduce::min, x, dim, keepdim);
}

Tensor any(const Tensor& input) {
  Op op("any");
  Tensor x = op.in(input);
  NoGradGuard no_grad;
  Tensor truth = x.dtype() == boolean ? x : ne(x, 0);
  ReduceDims r(truth, kAll);
  Tensor count = r.reduce(kernels::Reduce::sum, truth, i64);
  return r.shaped(ne(count, 0), false);
}
Tensor all(const Tensor& input) {
  Op op("all");
  Tensor x = op.in(input);
  NoGradGuard no_grad;
  return logical_not(any(logical_not(x)));
}

}  // namespace tg
