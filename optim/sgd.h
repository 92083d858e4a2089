// Stochastic gradient descent.
#pragma once
#include "tapegrad/optim/optimizer.h"

namespace tg::optim {

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;  // of the gradient's share in the momentum
  double weight_decay = 0;
  bool nesterov = false;  // needs momentum, and no dampening
  bool maximize = false;
};

extern template class GroupedOptimizer<SGDOptions>;

// g = gradient + weight_decay p;  b = g in the first step, then momentum b + (1 - dampening) g;
// p -= lr b, or lr (g + momentum b) with nesterov (kernels/optim.h). PyTorch's formula and
// defaults. ValueError for settings outside of their range.
class SGD final : public GroupedOptimizer<SGDOptions> {
 public:
  explicit SGD(const Parameters& parameters, SGDOptions options = {});
  const char* name() const override { return "SGD"; }

 protected:
  void check_options(const SGDOptions& options) const override;
  void step_group(size_t group, std::vector<Ready>& ready) override;
  std::initializer_list<const char*> state_names() const override;
  void visit_settings(size_t group, SettingVisitor& visitor) override;
};

}  // namespace tg::optim
