#include "tapegrad/optim/gradients.h"

#include <unordered_set>

#include "tapegrad/autograd/grad_mode.h"

namespace tg::optim {

namespace {

struct Clipped {
  bool scaled = false;
  std::unordered_set<const TensorImpl*> parameters;
};
Clipped& clipped() {
  static thread_local Clipped c;
  return c;
}

}  // namespace

std::vector<Tensor> gradients_of(const std::vector<Tensor>& parameters) {
  NoGradGuard no_grad;
  std::unordered_set<const TensorImpl*> seen;
  std::vector<Tensor> gradients;
  for (const Tensor& p : parameters) {
    Tensor g = p.grad();
    if (!g.defined() || !seen.insert(p.impl()).second) continue;
    if (!is_dense(g.shape(), g.strides())) {
      g = g.contiguous();
      p.set_grad(g);
    }
    gradients.push_back(g);
  }
  return gradients;
}

std::vector<View> read_all(const std::vector<Tensor>& gradients) {
  std::vector<View> views;
  for (const Tensor& g : gradients) views.push_back(g.read());
  return views;
}

std::vector<MutView> write_all(const std::vector<Tensor>& gradients) {
  std::vector<MutView> views;
  for (const Tensor& g : gradients) views.push_back(g.write());
  return views;
}

void begin_scaled() {
  clipped().scaled = true;
  clipped().parameters.clear();
}

void end_scaled() {
  clipped().scaled = false;
  clipped().parameters.clear();
}

void note_clipped(const std::vector<Tensor>& parameters) {
  if (!clipped().scaled) return;
  for (const Tensor& p : parameters)
    if (p.grad().defined()) clipped().parameters.insert(p.impl());
}

bool was_clipped_scaled(const std::vector<Tensor>& parameters) {
  for (const Tensor& p : parameters)
    if (clipped().parameters.count(p.impl())) return true;
  return false;
}

}  // namespace tg::optim
