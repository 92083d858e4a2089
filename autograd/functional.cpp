#include "tapegrad/autograd/functional.h"

#include "tapegrad/autograd/engine.h"
#include "tapegrad/autograd/grad_mode.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/joining.h"
#include "tapegrad/autograd/ops/views.h"
#include "tapegrad/core/scope.h"

namespace tg {
namespace {

// Rows of the Jacobian of y, which was computed from x; x.shape behind y.shape.
Tensor jacobian_of(const Tensor& y, const Tensor& x, bool create_graph) {
  Shape shape = y.shape();
  for (int64_t n : x.shape()) shape.push_back(n);
  if (!y.requires_grad()) return zeros(shape, x.options());
  GradOptions options;
  options.retain_graph = true;
  options.create_graph = create_graph;
  options.allow_unused = true;
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < y.numel(); ++i) {
    Tensor unit = zeros({y.numel()}, y.options());
    fill_(select(unit, 0, i), 1);
    options.gradients = {reshape(unit, y.shape())};
    Tensor row = grad(y, x, options);
    rows.push_back(row.defined() ? row : zeros(x.shape(), x.options()));
  }
  return rows.empty() ? zeros(shape, x.options()) : reshape(stack(rows), shape);
}

}  // namespace

Tensor jacobian(const Function<Tensor(const Tensor&)>& fn, const Tensor& x, bool create_graph) {
  Scope scope("jacobian");
  EnableGradGuard recording;
  Tensor leaf = create_graph && x.requires_grad() ? x : x.detach().requires_grad_();
  return jacobian_of(fn(leaf), leaf, create_graph);
}

Tensor hessian(const Function<Tensor(const Tensor&)>& fn, const Tensor& x) {
  Scope scope("hessian");
  EnableGradGuard recording;
  Tensor leaf = x.detach().requires_grad_();
  Tensor y = fn(leaf);
  check<ShapeError>(y.numel() == 1, "the function must return one element, got shape", y.shape());
  GradOptions options;
  options.create_graph = true;
  options.allow_unused = true;
  Tensor first = y.requires_grad() ? grad(y, leaf, options) : Tensor();
  if (!first.defined()) first = zeros(x.shape(), x.options());
  return jacobian_of(first, leaf, false);
}

}  // namespace tg
