#include <numeric>
#include <optional>

#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops/arithmetic.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/normalization.h"
#include "tapegrad/autograd/ops/reduction.h"
#include "tapegrad/autograd/ops/unary.h"
#include "tapegrad/autograd/ops/views.h"
#include "tapegrad/kernels/batch_norm.h"

namespace tg {
namespace {

// Statistics of 16-bit floats are kept in f32.
DType statistics_dtype(const Tensor& x) { return x.dtype() == f64 ? f64 : f32; }

// Channels of a pixel next to each other and no gaps, whatever the rank.
bool has_channel_rows(const Tensor& x) {
  Shape shape = x.shape(), strides = x.strides();
  shape.erase(1);
  strides.erase(1);
  shape.push_back(x.size(1));
  strides.push_back(x.stride(1));
  return is_contiguous(shape, strides);
}

// dy in the layout of x, for the kernel: no history.
Tensor in_layout_of(const Tensor& x, const Tensor& dy) {
  if (dy.strides() == x.strides()) return dy;
  NoGradGuard no_grad;
  Tensor same = empty_strided(x.shape(), x.strides(), dy.options());
  copy_(same, dy);
  return same;
}

View view_of(const Tensor& x) { return x.defined() ? x.read() : View{}; }
MutView writable(const Tensor& x) { return x.defined() ? x.write() : MutView{}; }

// What the backward works from.
struct Normalization {
  Saved x, weight, mean, rstd;
  std::optional<DType> bias;  // its type, if there is one
  bool through_statistics = false;
  double eps = 0;
};

// With d = x - mean, z = d rstd and sums over a channel's n values:
//   dweight = sum dy z    dbias = sum dy
//   dx = weight rstd (dy - sum dy / n - z sum dy z / n)
Grads fused_backward(const Normalization& saved, const Tensor& dy, Needs needs) {
  const Tensor x = saved.x.get(), w = saved.weight.get(), rstd = saved.rstd.get();
  const Tensor mean = saved.mean.get(), g = in_layout_of(x, dy);
  Grads grads(3);
  if (needs[0]) grads[0] = empty_strided(x.shape(), x.strides(), x.options());
  if (needs[1] && w.defined()) grads[1] = empty_like(w);
  if (needs[2] && saved.bias) grads[2] = empty(mean.shape(), {*saved.bias, x.device()});
  on(x.device(), [&](auto device) {
    kernels::batch_norm_backward(device, x.read(), g.read(), mean.read(), rstd.read(), view_of(w),
                                 saved.through_statistics, writable(grads[0]), writable(grads[1]),
                                 writable(grads[2]));
  });
  return grads;
}

// The same of operators that have derivatives themselves; mean and rstd are computed anew, since
// they depend on x.
Grads differentiable_backward(const Normalization& saved, const Tensor& dy, Needs needs) {
  const Tensor input = saved.x.get(), w = saved.weight.get();
  const DType type = statistics_dtype(input);
  const Tensor x = cast(input, type), g = cast(dy, type);
  std::vector<int64_t> dims(static_cast<size_t>(x.dim()));
  std::iota(dims.begin(), dims.end(), int64_t(0));
  dims.erase(dims.begin() + 1);
  Shape per_channel = Shape::filled(int(x.dim()), 1);
  per_channel[1] = x.size(1);
  Tensor z, rstd;
  if (saved.through_statistics) {
    const Tensor d = x - tg::mean(x, dims, true);
    rstd = rsqrt(tg::mean(d * d, dims, true) + saved.eps);
    z = d * rstd;
  } else {
    rstd = reshape(saved.rstd.get(), per_channel);
    z = (x - reshape(saved.mean.get(), per_channel)) * rstd;
  }
  Grads grads(3);
  if (needs[0]) {
    Tensor dx = g;
    if (saved.through_statistics)
      dx = g - tg::mean(g, dims, true) - z * tg::mean(g * z, dims, true);
    dx = dx * rstd;
    if (w.defined()) dx = dx * reshape(cast(w, type), per_channel);
    grads[0] = cast(dx, input.dtype());
  }
  if (needs[1] && w.defined()) grads[1] = cast(sum(g * z, dims), w.dtype());
  if (needs[2] && saved.bias) grads[2] = cast(sum(g, dims), *saved.bias);
  return grads;
}

void check_channels(const char* what, const Tensor& v, const Tensor& x) {
  if (!v.defined()) return;
  check<ShapeError>(v.dim() == 1 && v.size(0) == x.size(1), what, "of shape", v.shape(),
                    "does not fit the", x.size(1), "channels of input", x.shape());
  check<DTypeError>(v.dtype() == x.dtype() || v.dtype() == statistics_dtype(x), what, "is", v,
                    "for an input", x, "- it must be of the input's type or", statistics_dtype(x));
}

}  // namespace

// y = (x - mean) rstd weight + bias, rstd = 1 / sqrt(variance + eps)
Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                  const Tensor& weight, const Tensor& bias, BatchNormOptions options) {
  Op op("batch_norm");  // no cast: the kernel computes in f32 whatever x is
  Tensor x = op.in(input);
  check<DTypeError>(x.is_floating(), "works on floats, got", x, "- cast it with .to(f32)");
  check<ShapeError>(x.dim() >= 2, "takes [N,C,...], got", x.shape());
  check_channels("weight", weight, x);
  check_channels("bias", bias, x);
  check_channels("running_mean", running_mean, x);
  check_channels("running_var", running_var, x);
  check<ValueError>(running_mean.defined() == running_var.defined(),
                    "running_mean and running_var belong together: one of them is undefined");
  check<ValueError>(options.training || running_mean.defined(),
                    "evaluation needs running_mean and running_var, which are undefined");
  const int64_t values = x.size(1) ? x.numel() / x.size(1) : 0;
  if (!has_channel_rows(x) && !x.is_contiguous()) x = contiguous(x);

  const TensorOptions number{statistics_dtype(x), x.device()};
  Tensor mean, rstd;
  if (options.training) {
    check<ValueError>(values != 1 && (values > 0 || x.size(1) == 0),
                      "training needs more than one value per channel, input", x.shape());
    mean = empty({x.size(1)}, number);
    rstd = empty({x.size(1)}, number);
    on(x.device(), [&](auto device) {
      kernels::batch_norm_statistics(device, x.read(), options.eps, mean.write(), rstd.write(),
                                     options.momentum, writable(running_mean),
                                     writable(running_var));
    });
  } else {
    NoGradGuard no_grad;
    mean = contiguous(cast(running_mean, number.dtype)).clone();
    rstd = rsqrt(contiguous(cast(running_var, number.dtype)) + options.eps);
  }
  Tensor y = empty_strided(x.shape(), x.strides(), x.options());
  on(x.device(), [&](auto device) {
    kernels::batch_norm_apply(device, x.read(), mean.read(), rstd.read(), view_of(weight),
                              view_of(bias), y.write());
  });
  Normalization saved;
  saved.x = Saved::input(x);
  if (weight.defined()) saved.weight = Saved::input(weight);
  saved.mean = Saved::plain(mean);
  saved.rstd = Saved::plain(rstd);
  if (bias.defined()) saved.bias = bias.dtype();
  saved.through_statistics = options.training;
  saved.eps = options.eps;
  return op.record(y, {x, weight, bias},
                   [saved = std::move(saved)](const Tensor& dy, Needs needs) -> Grads {
                     return grad_enabled() ? differentiable_backward(saved, dy, needs)
                                           : fused_backward(saved, dy, needs);
                   });
}

}  // namespace tg
