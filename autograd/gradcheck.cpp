#include "tapegrad/autograd/gradcheck.h"

#include <cmath>

#include "tapegrad/autograd/engine.h"
#include "tapegrad/autograd/grad_mode.h"
#include "tapegrad/autograd/ops/creation.h"

namespace tg {
namespace {

// Fixed numbers in [-1, 1] without a pattern that an operator could be blind to.
double weight(int64_t i, int salt) { return std::sin(1.0 + 2.3 * double(i) + 5.1 * salt); }

Tensor weights(const Tensor& y, int salt) {
  std::vector<double> v(size_t(y.numel()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = weight(int64_t(i), salt);
  return tensor(v, y.shape(), TensorOptions(f64));
}

std::vector<Tensor> float_outputs(const TensorFunction& fn, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> kept;
  for (const Tensor& y : fn(inputs)) {
    if (!y.defined() || !y.is_floating()) continue;
    check<DTypeError>(y.dtype() == f64, "gradcheck works in f64, an output is", y);
    kept.push_back(y);
  }
  return kept;
}

double weighted_sum(const std::vector<Tensor>& ys, int salt) {
  double total = 0;
  for (size_t k = 0; k < ys.size(); ++k) {
    std::vector<double> v = ys[k].to_vector<double>();
    for (size_t i = 0; i < v.size(); ++i) total += v[i] * weight(int64_t(i), salt + 10 * int(k));
  }
  return total;
}

// A fresh leaf with the value of x, so that the caller's tensors stay as they are.
Tensor leaf_of(const Tensor& x) {
  Tensor copy = x.detach().clone();
  if (x.requires_grad()) copy.requires_grad_();
  return copy;
}

void check_with_weights(const TensorFunction& fn, const std::vector<Tensor>& inputs,
                        GradcheckOptions o, int salt) {
  std::vector<Tensor> leaves;
  for (const Tensor& x : inputs) leaves.push_back(leaf_of(x));
  std::vector<Tensor> ys, dys;
  {
    EnableGradGuard recording;
    int k = 0;
    for (Tensor& y : float_outputs(fn, leaves)) {
      int this_salt = salt + 10 * k++;
      if (!y.requires_grad()) continue;
      ys.push_back(y);
      dys.push_back(weights(y, this_salt));
    }
  }
  check<AutogradError>(!ys.empty(), "no float output depends on an input that requires grad");
  backward(ys, dys);
  for (size_t n = 0; n < inputs.size(); ++n) {
    if (!inputs[n].requires_grad()) continue;
    std::vector<double> x = inputs[n].detach().to_vector<double>();
    std::vector<double> analytic(x.size(), 0.0);
    if (leaves[n].grad().defined()) analytic = leaves[n].grad().to_vector<double>();
    NoGradGuard no_grad;
    for (size_t i = 0; i < x.size(); ++i) {
      double side[2];
      for (int s : {0, 1}) {
        std::vector<double> moved = x;
        moved[i] += s ? o.step : -o.step;
        std::vector<Tensor> probe = inputs;
        // The layout of the input is kept: a strided path is what may be under test.
        probe[n] = inputs[n].detach().clone();
        copy_(probe[n], tensor(moved, inputs[n].shape(), TensorOptions(f64)));
        side[s] = weighted_sum(float_outputs(fn, probe), salt);
      }
      double numeric = (side[1] - side[0]) / (2 * o.step);
      bool close = std::abs(numeric - analytic[i]) <= o.atol + o.rtol * std::abs(numeric);
      check<AutogradError>(close, "gradcheck: input", n, "element", i, "of shape",
                           inputs[n].shape(), ": the backward gives", analytic[i],
                           "but differences give", numeric);
    }
  }
}

}  // namespace

void gradcheck(const TensorFunction& fn, const std::vector<Tensor>& inputs, GradcheckOptions o) {
  bool any = false;
  for (const Tensor& x : inputs) {
    if (!x.requires_grad()) continue;
    any = true;
    check<DTypeError>(x.dtype() == f64, "gradcheck needs f64 inputs, got", x);
  }
  check<ValueError>(any, "gradcheck: no input requires grad");
  for (int salt : {1, 2}) check_with_weights(fn, inputs, o, salt);
}

void gradgradcheck(const TensorFunction& fn, const std::vector<Tensor>& inputs,
                   GradcheckOptions o) {
  std::vector<Tensor> all = inputs;
  {
    NoGradGuard no_grad;
    int salt = 3;
    for (const Tensor& y : float_outputs(fn, inputs))
      all.push_back(weights(y, salt++).requires_grad_());
  }
  size_t count = inputs.size();
  TensorFunction gradient = [&fn, count](const std::vector<Tensor>& x) {
    EnableGradGuard recording;  // also while differences are taken
    std::vector<Tensor> leaves(x.begin(), x.begin() + ptrdiff_t(count));
    for (Tensor& leaf : leaves)
      if (leaf.defined() && leaf.dtype() == f64 && !leaf.requires_grad())
        leaf = leaf.detach().requires_grad_();
    std::vector<Tensor> ys, dys, wanted;
    size_t k = count;
    for (Tensor& y : float_outputs(fn, leaves)) {
      if (y.requires_grad()) {
        ys.push_back(y);
        dys.push_back(x[k]);
      }
      ++k;
    }
    for (const Tensor& leaf : leaves)
      if (leaf.defined() && leaf.requires_grad()) wanted.push_back(leaf);
    GradOptions options;
    options.gradients = dys;
    options.create_graph = true;
    options.allow_unused = true;
    return grad(ys, wanted, options);
  };
  gradcheck(gradient, all, o);
}

}  // namespace tg
