// Adam (Kingma and Ba 2014), and AdamW with decoupled weight decay (Loshchilov and Hutter 2017).
#pragma once
#include "tapegrad/optim/optimizer.h"

namespace tg::optim {

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;  // added to the gradient
  bool maximize = false;
};

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;  // p *= 1 - lr weight_decay, before the step
  bool maximize = false;
};

// m += (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g^2;
// p -= lr m^ / (sqrt(v^) + eps) with m^ = m / (1 - beta1^t), v^ = v / (1 - beta2^t): eps is added
// after the correction, as in the paper and in PyTorch. Steps are counted for each parameter.
// ValueError for settings outside of their range.
template <class Options>
class AdamBase : public GroupedOptimizer<Options> {
 public:
  const char* name() const override;

 protected:
  using Ready = Optimizer::Ready;
  void check_options(const Options& options) const override;
  void step_group(size_t group, std::vector<Ready>& ready) override;
  std::initializer_list<const char*> state_names() const override;
  void visit_settings(size_t group, SettingVisitor& visitor) override;
};

extern template class GroupedOptimizer<AdamOptions>;
extern template class GroupedOptimizer<AdamWOptions>;
extern template class AdamBase<AdamOptions>;
extern template class AdamBase<AdamWOptions>;

class Adam final : public AdamBase<AdamOptions> {
 public:
  explicit Adam(const Parameters& parameters, AdamOptions options = {});
};

class AdamW final : public AdamBase<AdamWOptions> {
 public:
  explicit AdamW(const Parameters& parameters, AdamWOptions options = {});
};

}  // namespace tg::optim
