// Reductions made of others: variance, norms, logsumexp; running sums and products.
#include <algorithm>
#include <cmath>

#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops/arithmetic.h"
#include "tapegrad/autograd/ops/comparison.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/joining.h"
#include "tapegrad/autograd/ops/reduction.h"
#include "tapegrad/autograd/ops/softmax.h"
#include "tapegrad/autograd/ops/unary.h"
#include "tapegrad/autograd/ops/views.h"
#include "tapegrad/autograd/reduce_dims.h"

namespace tg {
namespace {

Tensor float_input(const Op& op, const Tensor& input) {
  Tensor x = op.in(input);
  check<DTypeError>(x.is_floating(), "needs a float tensor, got", x.dtype(), "; cast it first");
  return x;
}
// 16-bit floats are widened until the result is rounded once.
Tensor widened(const Tensor& x) { return size_of(x.dtype()) == 2 ? cast(x, f32) : x; }

// n - correction as a double: any correction fits.
double divisor(const ReduceDims& r, int64_t correction) {
  return std::max(0.0, double(r.count()) - double(correction));
}

// Kept-dim variance in x's widened dtype, from the mean: two passes.
Tensor variance(const Tensor& x, const ReduceDims& r, int64_t correction) {
  Tensor wide = widened(x);
  Tensor mean = r.reduce(kernels::Reduce::sum, wide, wide.dtype(), double(r.count()));
  double n = divisor(r, correction);
  return r.reduce(kernels::Reduce::sum_of_squares, wide - mean, wide.dtype(), n);
}

// x - mean(x), recorded.
Tensor centred(const Tensor& x, const ReduceDims& r) {
  return x - mean(x, r.dims(), /*keepdim=*/true);
}

// a / b, and 0 where b is 0, in every derivative.
Tensor ratio_or_zero(const Tensor& a, const Tensor& b) {
  Tensor none = eq(b, 0);
  return where(none, 0, a / where(none, 1, b));
}

}  // namespace

// y = sum((x - m)^2) / (n - c)    dx = dy * 2 / (n - c) * (x - m)
Tensor var(const Tensor& input, const std::vector<int64_t>& dims, int64_t correction,
           bool keepdim) {
  Op op("var", Cast::f32);
  Tensor x = float_input(op, input);
  ReduceDims r(x, dims);
  double n = divisor(r, correction);
  Tensor y;
  {
    NoGradGuard no_grad;
    y = cast(variance(x, r, correction), x.dtype());
  }
  return op.record(r.shaped(y, keepdim), {x},
                   [r, x = Saved::input(x), n](const Tensor& dy, Needs) -> Grads {
                     return {centred(x.get(), r) * (r.kept(dy) * 2 / n)};
                   });
}

// y = sqrt(var(x))    dx = dy / ((n - c) * y) * (x - m), 0 where y is 0
Tensor std(const Tensor& input, const std::vector<int64_t>& dims, int64_t correction,
           bool keepdim) {
  Op op("std", Cast::f32);
  Tensor x = float_input(op, input);
  ReduceDims r(x, dims);
  double n = divisor(r, correction);
  Tensor y;
  {
    NoGradGuard no_grad;
    y = cast(sqrt(variance(x, r, correction)), x.dtype());
  }
  y = r.shaped(y, keepdim);
  return op.record(
      y, {x}, [r, x = Saved::input(x), y = Saved::output(y), n](const Tensor& dy, Needs) -> Grads {
        return {centred(x.get(), r) * r.kept(ratio_or_zero(dy / n, y.get()))};
      });
}

// y = log(sum(e^x)) = m + log(sum(e^(x - m))), m = max(x)    dx = dy * softmax(x)
// (not e^(x - y): a large y has lost the digits that count)
Tensor logsumexp(const Tensor& input, int64_t dim, bool keepdim) {
  Op op("logsumexp", Cast::f32);
  Tensor x = float_input(op, input);
  ReduceDims r(x, {dim});
  Tensor y;
  {
    NoGradGuard no_grad;
    if (r.count() == 0) {
      y = full(r.kept(sum(x, dim, true)).shape(), -INFINITY, x.options());
    } else {
      Tensor wide = widened(x);
      Tensor m = r.reduce(kernels::Reduce::max, wide, wide.dtype());
      m = where(isinf(m), 0, m);  // all -inf or one inf: the sum says the rest
      Tensor total = r.reduce(kernels::Reduce::sum, exp(wide - m), wide.dtype());
      y = cast(log(total) + m, x.dtype());
    }
  }
  y = r.shaped(y, keepdim);
  return op.record(
      y, {x},
      [r, dim, x = Saved::input(x), y = Saved::output(y)](const Tensor& dy, Needs) -> Grads {
        Tensor none = eq(r.kept(y.get()), -INFINITY);
        return {r.kept(dy) * where(none, 0, softmax(x.get(), dim))};
      });
}

// y_i = x_0 + ... + x_i    dx_i = dy_i + ... + dy_n = sum(dy) - cumsum(dy)_i + dy_i
Tensor cumsum(const Tensor& input, int64_t dim) {
  Op op("cumsum", Cast::f32);
  Tensor x = op.in(input);
  dim = op.wrap_dim(dim, x);
  if (x.dim() == 0) return x.is_floating() ? clone(x) : cast(x, i64);
  Tensor y = empty_like(x, x.is_floating() ? x.dtype() : i64);
  on(x.device(), [&](auto device) { kernels::cumsum(device, x.read(), y.write(), int(dim)); });
  return op.record(y, {x}, [dim](const Tensor& dy, Needs) -> Grads {
    return {sum(dy, dim, /*keepdim=*/true) - cumsum(dy, dim) + dy};
  });
}

namespace {

// For each element the product of all others times dy, without a division: products of pairs, of
// pairs of pairs and so on, and the way back down. x has rank 1 and is not empty.
Tensor products_of_others(const Tensor& x, const Tensor& dy) {
  std::vector<Tensor> level = {x};
  while (level.back().numel() > 1) {
    Tensor p = level.back();
    if (p.numel() % 2) level.back() = p = cat({p, ones({1}, p.options())}, 0);
    level.push_back(slice(p, 0, 0, p.numel(), 2) * slice(p, 0, 1, p.numel(), 2));
  }
  Tensor others = reshape(dy, {1});
  for (size_t i = level.size() - 1; i-- > 0;) {
    const Tensor& p = level[i];
    int64_t n = p.numel();
    others = slice(others, 0, 0, n / 2);
    others = reshape(stack({others * slice(p, 0, 1, n, 2), others * slice(p, 0, 0, n, 2)}, 1), {n});
  }
  return slice(others, 0, 0, x.numel());
}

}  // namespace

// y = prod(x)    dx_i = dy * product of the other elements (right for zeros too)
Tensor prod(const Tensor& input) {
  Op op("prod", Cast::f32);
  Tensor x = op.in(input);
  ReduceDims r(x, {});
  Tensor y = r.reduce(kernels::Reduce::prod, x, x.is_floating() ? x.dtype() : i64);
  return op.record(r.shaped(y, false), {x},
                   [x = Saved::input(x)](const Tensor& dy, Needs) -> Grads {
                     Tensor u = x.get();
                     if (u.numel() == 0) return {u * dy};
                     return {reshape(products_of_others(reshape(u, {-1}), dy), u.shape())};
                   });
}

namespace {

// dx of a norm whose value is y, both with the reduced dimensions kept.
Tensor norm_gradient(const Tensor& x, const Tensor& y, const Tensor& dy, double p,
                     const ReduceDims& r) {
  if (p == 0) return zeros_like(x);
  if (p == 1) return sign(x) * dy;
  if (p == 2) return x * ratio_or_zero(dy, y);
  if (std::isinf(p)) {
    Tensor hit = logical_and(eq(abs(x), y), ne(x, 0));
    Tensor count = cast(sum(hit, r.dims(), /*keepdim=*/true), dy.dtype());
    return where(hit, sign(x) * ratio_or_zero(dy, count), 0);
  }
  Tensor zero = eq(x, 0);
  Tensor size = where(zero, 1, abs(x));
  Tensor scale = ratio_or_zero(dy, pow(where(eq(y, 0), 1, y), p - 1));
  return where(logical_or(zero, eq(y, 0)), 0, sign(x) * pow(size, p - 1) * scale);
}

Tensor norm_value(const Tensor& x, double p, const ReduceDims& r) {
  using kernels::Reduce;
  if (p == 2) return sqrt(r.reduce(Reduce::sum_of_squares, x, x.dtype()));
  if (p == 1) return r.reduce(Reduce::sum_of_sizes, x, x.dtype());
  if (p == 0) return r.reduce(Reduce::sum, ne(x, 0), x.dtype());
  if (std::isinf(p)) return r.reduce(p > 0 ? Reduce::max : Reduce::min, abs(x), x.dtype());
  return pow(r.reduce(Reduce::sum, pow(abs(x), p), x.dtype()), 1 / p);
}

}  // namespace

// y = (sum |x|^p)^(1/p)    dx = sign(x) * |x|^(p-1) * dy / y^(p-1), 0 where x or y is 0
Tensor norm(const Tensor& input, double p, const std::vector<int64_t>& dims, bool keepdim) {
  Op op("norm", Cast::f32);
  Tensor x = float_input(op, input);
  check<ValueError>(!std::isnan(p), "p is NaN");
  ReduceDims r(x, dims);
  check<ValueError>(r.count() > 0 || (p >= 0 && !std::isinf(p)),
                    "an empty range has no norm with p =", p);
  Tensor y;
  {
    NoGradGuard no_grad;
    y = cast(norm_value(widened(x), p, r), x.dtype());
  }
  y = r.shaped(y, keepdim);
  return op.record(
      y, {x}, [r, p, x = Saved::input(x), y = Saved::output(y)](const Tensor& dy, Needs) -> Grads {
        return {norm_gradient(x.get(), r.kept(y.get()), r.kept(dy), p, r)};
      });
}

}  // namespace tg
