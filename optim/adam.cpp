#include "tapegrad/optim/adam.h"

#include "tapegrad/kernels/optim.h"

namespace tg::optim {

template <class Options>
inline constexpr bool kDecoupled = std::is_same_v<Options, AdamWOptions>;

template <class Options>
const char* AdamBase<Options>::name() const {
  return kDecoupled<Options> ? "AdamW" : "Adam";
}

template <class Options>
void AdamBase<Options>::check_options(const Options& o) const {
  check<ValueError>(o.lr >= 0, name(), "needs lr not below 0, got", o.lr);
  check<ValueError>(o.beta1 >= 0 && o.beta1 < 1 && o.beta2 >= 0 && o.beta2 < 1, name(),
                    "needs beta1 and beta2 in [0, 1), got", o.beta1, o.beta2);
  check<ValueError>(o.eps >= 0, name(), "needs eps not below 0, got", o.eps);
  check<ValueError>(o.weight_decay >= 0, name(), "needs weight_decay not below 0, got",
                    o.weight_decay);
}

template <class Options>
void AdamBase<Options>::step_group(size_t group, std::vector<Ready>& ready) {
  const Options& o = this->group(group);
  std::vector<kernels::AdamEntry> entries;
  entries.reserve(ready.size());
  for (Ready& r : ready) {
    auto* slot = r.slot;
    for (Tensor& x : slot->state)
      if (!x.defined()) x = this->new_state(slot->parameter);
    entries.push_back({slot->parameter.write(), r.gradient.read(), slot->state[0].write(),
                       slot->state[1].write(), slot->steps});
  }
  kernels::AdamRule rule{o.lr,      o.beta1, o.beta2, o.eps, o.weight_decay, kDecoupled<Options>,
                         o.maximize};
  on(ready[0].gradient.device(), [&](auto device) { kernels::adam(device, entries, rule); });
}

template <class Options>
std::initializer_list<const char*> AdamBase<Options>::state_names() const {
  static constexpr std::initializer_list<const char*> kNames = {"exp_avg", "exp_avg_sq"};
  return kNames;
}

template <class Options>
void AdamBase<Options>::visit_settings(size_t group, SettingVisitor& v) {
  Options& o = this->group(group);
  v.number("lr", o.lr);
  v.number("beta1", o.beta1);
  v.number("beta2", o.beta2);
  v.number("eps", o.eps);
  v.number("weight_decay", o.weight_decay);
  v.flag("maximize", o.maximize);
}

template class GroupedOptimizer<AdamOptions>;
template class GroupedOptimizer<AdamWOptions>;
template class AdamBase<AdamOptions>;
template class AdamBase<AdamWOptions>;

Adam::Adam(const Parameters& parameters, AdamOptions options) { add_group(parameters, options); }

AdamW::AdamW(const Parameters& parameters, AdamWOptions options) { add_group(parameters, options); }

}  // namespace tg::optim
