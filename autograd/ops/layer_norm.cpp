#include "tapegrad/kernels/layer_norm.h"
#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops/arithmetic.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/normalization.h"
#include "tapegrad/autograd/ops/reduction.h"
#include "tapegrad/autograd/ops/unary.h"
#include "tapegrad/autograd/ops/views.h"

namespace tg {
namespace {

View view_or_null(const Tensor& x) { return x.defined() ? x.read() : View{}; }
MutView write_or_null(const Tensor& x) { return x.defined() ? x.write() : MutView{}; }

void check_affine(const Tensor& p, const char* name, const Tensor& x, const Shape& shape) {
  if (!p.defined()) return;
  check<ShapeError>(p.shape() == shape, name, "must have the normalized shape", shape, "got",
                    p.shape());
  check<DTypeError>(p.dtype() == x.dtype(), name, "is", p.dtype(), "but the input is", x.dtype());
}

// The formulas of kernels/layer_norm.h from differentiable operators, for gradients of gradients.
Grads layer_norm_gradients(const Tensor& x, const Tensor& weight, const Tensor& dy,
                           const Shape& normalized, double eps, Needs needs) {
  std::vector<int64_t> inner, outer;
  for (int64_t d = 0; d < x.dim(); ++d)
    (d < x.dim() - normalized.rank() ? outer : inner).push_back(d);
  const Tensor centred = x - mean(x, inner, true);
  const Tensor rstd = rsqrt(mean(square(centred), inner, true) + eps);
  const Tensor xhat = centred * rstd;
  Tensor dx, dweight, dbias;
  if (needs[0]) {
    const Tensor g = weight.defined() ? dy * weight : dy;
    dx = rstd * (g - mean(g, inner, true) - xhat * mean(g * xhat, inner, true));
  }
  if (needs[1] && weight.defined()) dweight = outer.empty() ? dy * xhat : sum(dy * xhat, outer);
  if (needs[2]) dbias = outer.empty() ? dy : sum(dy, outer);
  return {dx, dweight, dbias};
}

}  // namespace

// y = (x - mean) rstd weight + bias; the backward stands in kernels/layer_norm.h
Tensor layer_norm(const Tensor& input, const Shape& normalized_shape, const Tensor& weight_in,
                  const Tensor& bias_in, double eps) {
  Op op("layer_norm", Cast::f32);
  const Tensor in = op.in(input);
  check<DTypeError>(in.is_floating(), "works on floating point tensors, got", in.dtype());
  const int inner = normalized_shape.rank();
  bool fits = inner >= 1 && inner <= in.dim();
  for (int d = 0; fits && d < inner; ++d)
    fits = in.shape()[int(in.dim()) - inner + d] == normalized_shape[d];
  check<ShapeError>(fits, "the normalized shape", normalized_shape,
                    "must be the last dimensions of the input", in.shape());
  const Tensor x = contiguous(in);
  const Tensor weight = weight_in.defined() ? contiguous(op.in(weight_in)) : Tensor();
  const Tensor bias = bias_in.defined() ? contiguous(op.in(bias_in)) : Tensor();
  check_affine(weight, "weight", x, normalized_shape);
  check_affine(bias, "bias", x, normalized_shape);

  Shape rows;
  for (int d = 0; d < int(x.dim()) - inner; ++d) rows.push_back(x.shape()[d]);
  const TensorOptions computed(x.dtype() == DType::f64 ? DType::f64 : DType::f32, x.device());
  Tensor y = empty(x.shape(), x.options()), mean = empty(rows, computed);
  Tensor rstd = empty(rows, computed);
  on(x.device(), [&](auto device) {
    kernels::layer_norm(device, x.read(), view_or_null(weight), view_or_null(bias), y.write(),
                        mean.write(), rstd.write(), eps);
  });
  const auto backward = [x = Saved::input(x), weight = Saved::input(weight),
                         mean = Saved::plain(mean), rstd = Saved::plain(rstd), normalized_shape,
                         eps,
                         has_bias = bias.defined()](const Tensor& gradient, Needs needs) -> Grads {
    const Tensor in = x.get(), w = weight.get();
    if (grad_enabled()) return layer_norm_gradients(in, w, gradient, normalized_shape, eps, needs);
    const Tensor dy = contiguous(gradient);
    Tensor dx, dweight, dbias;
    if (needs[0]) dx = empty(in.shape(), in.options());
    if (needs[1] && w.defined()) dweight = empty(normalized_shape, in.options());
    if (needs[2] && has_bias) dbias = empty(normalized_shape, in.options());
    on(in.device(), [&](auto device) {
      kernels::layer_norm_backward(device, in.read(), dy.read(), view_or_null(w), mean.get().read(),
                                   rstd.get().read(), write_or_null(dx), write_or_null(dweight),
                                   write_or_null(dbias));
    });
    return {dx, dweight, dbias};
  };
  return op.record(y, {x, weight, bias}, backward);
}

}  // namespace tg
