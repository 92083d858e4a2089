#include "tapegrad/autograd/ops/losses.h"

#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops/arithmetic.h"
#include "tapegrad/autograd/ops/comparison.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/indexing.h"
#include "tapegrad/autograd/ops/reduction.h"
#include "tapegrad/autograd/ops/softmax.h"
#include "tapegrad/autograd/ops/unary.h"
#include "tapegrad/autograd/ops/views.h"
#include "tapegrad/kernels/cross_entropy.h"

namespace tg {
namespace {

Tensor reduce(const Tensor& losses, Reduction reduction) {
  if (reduction == Reduction::none) return losses;
  return reduction == Reduction::mean ? mean(losses) : sum(losses);
}

// What a 16-bit type is computed in.
DType wide(DType t) { return t == DType::f64 ? DType::f64 : DType::f32; }

void check_pair(const Tensor& input, const Tensor& target) {
  check<DTypeError>(input.is_floating(), "works on floating point tensors, got", input.dtype());
  check<ShapeError>(input.shape() == target.shape(),
                    "input and target must have the same shape, got", input.shape(), "and",
                    target.shape(), "(nothing is broadcast here; reshape one of them)");
}

// ---- classes --------------------------------------------------------------------------------

// Checks what cross_entropy and nll_loss share and gives x as [N,C,...], the target dense, and the
// class weights in the type that is computed in.
struct ClassLoss {
  ClassLoss(const Op& op, const Tensor& input, const Tensor& t, const CrossEntropyOptions& o) {
    check(t.defined(), "the target is undefined");
    op.same_device(input, t);
    check<DTypeError>(input.is_floating(), "works on floating point tensors, got", input.dtype());
    check<DTypeError>(t.dtype() == DType::i64, "targets are class indices of type i64, got",
                      t.dtype(), "(convert them with .to(i64))");
    check<ShapeError>(input.dim() >= 1, "the input needs a dimension of classes, got",
                      input.shape());
    Shape expected = input.shape();
    expected.erase(input.dim() == 1 ? 0 : 1);
    check<ShapeError>(t.shape() == expected, "a target of shape", expected, "belongs to an input",
                      input.shape(), "but the target is", t.shape());
    x = input.dim() == 1 ? unsqueeze(input, 0) : input;
    classes = x.size(1);
    {
      NoGradGuard guard;
      target = contiguous(t);
      if (o.weight.defined()) {
        op.same_device(input, o.weight);
        check<ShapeError>(o.weight.shape() == Shape{classes}, "weight must be", Shape{classes},
                          "got", o.weight.shape());
        weight = contiguous(cast(o.weight.detach(), wide(x.dtype())));
      }
    }
    on(x.device(), [&](auto device) {
      kernels::check_targets(device, target.read(), classes, o.ignore_index);
    });
  }
  View weight_view() const { return weight.defined() ? weight.read() : View{}; }

  Tensor x, target, weight;
  int64_t classes = 0;
};

// [N,d1,...] -> [N,1,d1,...]; a single target [] -> [1,1]
Tensor with_class_dim(const Tensor& per_row) {
  return per_row.dim() == 0 ? reshape(per_row, {1, 1}) : unsqueeze(per_row, 1);
}

// The b_c of kernels/cross_entropy.h as a tensor like x; 0 in ignored rows.
Tensor coefficients(const Tensor& x, const Tensor& target, const Tensor& weight,
                    const kernels::CrossEntropy& o) {
  const Tensor index = with_class_dim(target), ignored = eq(index, o.ignore_index);
  Shape per_class = Shape::filled(int(x.dim()), 1);
  per_class[1] = x.size(1);
  const Tensor w =
      weight.defined() ? reshape(cast(weight, x.dtype()), per_class) : ones(per_class, x.options());
  const Tensor w_all = contiguous(expand(w, x.shape()));
  const Tensor safe = masked_fill(index, ignored, 0);
  const Tensor zero = zeros(x.shape(), x.options());
  const Tensor of_target = scatter_add(zero, 1, safe, gather(w_all, 1, safe) * (1 - o.smoothing));
  return masked_fill(of_target + w_all * (o.smoothing / double(x.size(1))), ignored, 0);
}

// dx = scale ((sum of b) softmax(x) - b), from differentiable operators: for gradients of
// gradients.
Tensor cross_entropy_gradient(const Tensor& x, const Tensor& target, const Tensor& weight,
                              const Tensor& scale, const kernels::CrossEntropy& o) {
  Tensor b;
  {
    NoGradGuard guard;
    b = coefficients(x, target, weight, o);
  }
  const Tensor factor = scale.numel() == 1 ? cast(reshape(scale, {}), x.dtype())
                                           : cast(with_class_dim(scale), x.dtype());
  const Tensor gradient = factor * (sum(b, 1, true) * softmax(x, 1) - b);
  return masked_fill(gradient, eq(with_class_dim(target), o.ignore_index), 0);
}

}  // namespace

// loss = -sum over c of b_c log softmax(x)_c    dx = dy ((sum of b) softmax(x) - b)
// (b: kernels/cross_entropy.h; the mean divides by the weights of the targets that count)
Tensor cross_entropy(const Tensor& logits, const Tensor& target_in, const CrossEntropyOptions& o) {
  Op op("cross_entropy", Cast::f32);
  check<ValueError>(o.label_smoothing >= 0 && o.label_smoothing <= 1,
                    "label_smoothing must lie in [0,1], got", o.label_smoothing);
  const ClassLoss in(op, op.in(logits), target_in, o);
  const kernels::CrossEntropy options{o.ignore_index, o.label_smoothing};
  const TensorOptions computed(wide(in.x.dtype()), in.x.device());
  Tensor losses = empty(in.target.shape(), computed), log_sums = empty(in.target.shape(), computed);
  Tensor totals = empty({2}, computed);
  on(in.x.device(), [&](auto device) {
    kernels::cross_entropy(device, in.x.read(), in.target.read(), in.weight_view(), losses.write(),
                           log_sums.write(), totals.write(), options);
  });
  Tensor y, count;
  {
    NoGradGuard guard;
    if (o.reduction == Reduction::mean) count = select(totals, 0, 1);
    y = o.reduction == Reduction::none  ? losses
        : o.reduction == Reduction::sum ? clone(select(totals, 0, 0))
                                        : select(totals, 0, 0) / count;
    y = cast(y, in.x.dtype());
  }
  return op.record(y, {in.x},
                   [x = Saved::input(in.x), target = Saved::plain(in.target),
                    weight = Saved::plain(in.weight), log_sums = Saved::plain(log_sums),
                    count = Saved::plain(count), options](const Tensor& dy, Needs) -> Grads {
                     const Tensor logits = x.get(), t = target.get(), w = weight.get(),
                                  sums = log_sums.get();
                     Tensor scale = cast(dy, sums.dtype());
                     if (count.defined()) scale = scale / count.get();
                     if (grad_enabled())
                       return {cross_entropy_gradient(logits, t, w, scale, options)};
                     scale = contiguous(scale);
                     Tensor dx = empty_like(logits);
                     on(dx.device(), [&](auto device) {
                       kernels::cross_entropy_backward(device, logits.read(), t.read(),
                                                       w.defined() ? w.read() : View{}, sums.read(),
                                                       scale.read(), dx.write(), options);
                     });
                     return {dx};
                   });
}

// loss = -w_t x_t
Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target_in,
                const CrossEntropyOptions& o) {
  Op op("nll_loss", Cast::f32);
  check<ValueError>(o.label_smoothing == 0, "label smoothing belongs to cross_entropy");
  const ClassLoss in(op, op.in(log_probabilities), target_in, o);
  const Tensor ignored = eq(in.target, o.ignore_index);
  const Tensor safe = masked_fill(in.target, ignored, 0);
  Tensor weight = in.weight.defined()
                      ? reshape(index_select(in.weight, 0, flatten(safe)), in.target.shape())
                      : ones(in.target.shape(), {wide(in.x.dtype()), in.x.device()});
  weight = cast(masked_fill(weight, ignored, 0), in.x.dtype());
  const Tensor picked = reshape(gather(in.x, 1, with_class_dim(safe)), in.target.shape());
  const Tensor losses = masked_fill(neg(picked) * weight, ignored, 0);
  if (o.reduction == Reduction::mean) return sum(losses) / sum(weight);
  return reduce(losses, o.reduction);
}

// ---- regression -----------------------------------------------------------------------------

Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  Op op("mse_loss", Cast::f32);
  const Tensor x = op.in(input), t = op.in(target);
  check_pair(x, t);
  return reduce(square(x - t), reduction);
}

Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  Op op("l1_loss", Cast::f32);
  const Tensor x = op.in(input), t = op.in(target);
  check_pair(x, t);
  return reduce(abs(x - t), reduction);
}

// |d| < beta: d^2 / (2 beta), else |d| - beta / 2
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, double beta, Reduction reduction) {
  Op op("smooth_l1_loss", Cast::f32);
  check<ValueError>(beta >= 0, "beta must not be negative, got", beta);
  const Tensor x = op.in(input), t = op.in(target);
  check_pair(x, t);
  const Tensor size = abs(x - t);
  if (beta == 0) return reduce(size, reduction);
  return reduce(where(lt(size, beta), square(size) * (0.5 / beta), size - 0.5 * beta), reduction);
}

// loss = p t log(1 + e^-x) + (1 - t) log(1 + e^x), a term with factor 0 being 0 (also times inf)
// dx = (1 - t) sigmoid(x) - p t sigmoid(-x)
Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& target,
                                        const BceOptions& o) {
  Op op("binary_cross_entropy_with_logits", Cast::f32);
  const Tensor x = op.in(logits), t = op.in(target);
  check_pair(x, t);
  const auto fits = [&](const Tensor& w, const char* name) {
    if (!w.defined()) return;
    check<ShapeError>(broadcast_shapes(w.shape(), x.shape()) == x.shape(), name, "of shape",
                      w.shape(), "does not broadcast to the input", x.shape());
  };
  fits(o.weight, "weight");
  fits(o.pos_weight, "pos_weight");
  const Tensor positive = o.pos_weight.defined() ? t * op.in(o.pos_weight) : t;
  const Tensor negative = 1 - t;
  const auto term = [](const Tensor& factor, const Tensor& value) {
    return where(eq(factor, 0), 0, factor * value);
  };
  Tensor losses = term(positive, softplus(neg(x))) + term(negative, softplus(x));
  if (o.weight.defined()) losses = losses * op.in(o.weight);
  return reduce(losses, o.reduction);
}

}  // namespace tg
