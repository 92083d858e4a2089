#include "tapegrad/optim/sgd.h"

#include "tapegrad/kernels/optim.h"

namespace tg::optim {

template class GroupedOptimizer<SGDOptions>;

SGD::SGD(const Parameters& parameters, SGDOptions options) { add_group(parameters, options); }

void SGD::check_options(const SGDOptions& o) const {
  check<ValueError>(o.lr >= 0, "SGD: lr must not be negative, got", o.lr);
  check<ValueError>(o.momentum >= 0, "SGD: momentum must not be negative, got", o.momentum);
  check<ValueError>(o.weight_decay >= 0, "SGD: weight_decay must not be negative, got",
                    o.weight_decay);
  check<ValueError>(!o.nesterov || (o.momentum > 0 && o.dampening == 0),
                    "SGD: nesterov needs momentum and no dampening, got momentum", o.momentum,
                    "dampening", o.dampening);
}

void SGD::step_group(size_t group, std::vector<Ready>& ready) {
  const SGDOptions& o = this->group(group);
  std::vector<kernels::SgdEntry> entries;
  entries.reserve(ready.size());
  for (Ready& r : ready) {
    Tensor& buffer = r.slot->state[0];
    bool first = !buffer.defined();
    if (first && o.momentum != 0) buffer = new_state(r.slot->parameter);
    MutView buffer_view = o.momentum != 0 ? buffer.write() : MutView{};
    entries.push_back({r.slot->parameter.write(), r.gradient.read(), buffer_view, first});
  }
  kernels::SgdRule rule{o.lr, o.momentum, o.dampening, o.weight_decay, o.nesterov, o.maximize};
  on(ready[0].gradient.device(), [&](auto device) { kernels::sgd(device, entries, rule); });
}

std::initializer_list<const char*> SGD::state_names() const {
  static constexpr std::initializer_list<const char*> kNames = {"momentum_buffer"};
  return kNames;
}

void SGD::visit_settings(size_t group, SettingVisitor& v) {
  SGDOptions& o = this->group(group);
  v.number("lr", o.lr);
  v.number("momentum", o.momentum);
  v.number("dampening", o.dampening);
  v.number("weight_decay", o.weight_decay);
  v.flag("nesterov", o.nesterov);
  v.flag("maximize", o.maximize);
}

}  // namespace tg::optim
