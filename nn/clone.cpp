#include "tapegrad/nn/clone.h"

#include <unordered_map>

#include "tapegrad/nn/walk.h"

namespace tg::nn {

void copy_modes(const Module& from, Module& to) { to.training_ = from.training_; }

void detail::copy_state(const Module& from, Module& to) {
  struct Slot {
    std::string name;
    Tensor* tensor;
    bool is_parameter;
  };
  auto slots = [](const Module& m) {
    std::vector<Slot> list;
    walk_tensors(m, [&](std::string name, Tensor& x, bool is_parameter) {
      list.push_back({std::move(name), &x, is_parameter});
    });
    return list;
  };
  std::vector<Slot> sources = slots(from), targets = slots(to);
  bool same = sources.size() == targets.size();
  for (size_t i = 0; same && i < sources.size(); ++i) same = sources[i].name == targets[i].name;
  check(same, from.type_name() + ": cannot be cloned: its constructor makes other members than",
        "this one has; give it a remake() const");

  std::unordered_map<const TensorImpl*, Tensor> copied;
  for (size_t i = 0; i < sources.size(); ++i) {
    const Tensor& x = *sources[i].tensor;
    Tensor& copy = copied[x.impl()];
    if (!copy.defined()) {
      Tensor fresh = x.detach().clone();
      copy = targets[i].is_parameter ? Tensor(Parameter(std::move(fresh), x.requires_grad()))
                                     : Tensor(Buffer(std::move(fresh)));
    }
    *targets[i].tensor = copy;
  }
  auto from_modules = from.named_modules(), to_modules = to.named_modules();
  for (size_t i = 0; i < from_modules.size(); ++i)
    copy_modes(*from_modules[i].module, *to_modules[i].module);
}

}  // namespace tg::nn
