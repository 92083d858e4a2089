#include "tapegrad/optim/optimizer.h"

#include <unordered_map>
#include <unordered_set>

#include "tapegrad/autograd/grad_mode.h"
#include "tapegrad/autograd/ops/creation.h"

namespace tg::optim {

Parameters::Parameters(const std::vector<Tensor>& tensors) : by_position_(true) {
  for (const Tensor& x : tensors) emplace_back(std::to_string(size()), x);
}

Optimizer::~Optimizer() = default;

Optimizer::Group& Optimizer::add_slots(const Parameters& parameters, double lr) {
  std::unordered_set<std::string> names;
  std::unordered_set<const TensorImpl*> tensors;
  size_t count = 0;
  for (const Group& group : groups_)
    for (const Slot& slot : group.slots) {
      names.insert(slot.name);
      tensors.insert(slot.parameter.impl());
      ++count;
    }
  check<ValueError>(!parameters.empty(), name(), "was given no parameters");
  Group group;
  group.initial_lr = lr;
  for (auto& [given_name, x] : parameters) {
    std::string slot_name = parameters.by_position() ? std::to_string(count++) : given_name;
    check<ValueError>(x.defined(), name(), "was given an undefined tensor as parameter", slot_name);
    check<ValueError>(tensors.insert(x.impl()).second, name(),
                      "was given the same tensor twice:", slot_name,
                      "; parameters() lists a tied weight once");
    check<ValueError>(names.insert(slot_name).second, name(), "has two parameters named", slot_name,
                      "; give those of the second model a prefix");
    check<DTypeError>(x.is_floating(), name(), "works on float types, but", slot_name, "is",
                      to_text(x));
    check<ValueError>(x.is_leaf(), name(), "works on leaves, but", slot_name,
                      "is the result of a recorded computation");
    check<ValueError>(is_dense(x.shape(), x.strides()), name(), "needs memory without gaps, but",
                      slot_name, "has strides", x.strides(), "; use contiguous()");
    group.slots.push_back({std::move(slot_name), x, 0, {}});
  }
  return groups_.emplace_back(std::move(group));
}

void Optimizer::zero_grad(bool set_to_none) {
  NoGradGuard no_grad;
  for (const Group& group : groups_)
    for (const Slot& slot : group.slots) {
      if (set_to_none)
        slot.parameter.set_grad({});
      else if (Tensor g = slot.parameter.grad(); g.defined())
        zero_(g);
    }
}

size_t Optimizer::checked_group(size_t i) const {
  check<IndexError>(i < groups_.size(), name(), "has no parameter group", i, "among",
                    groups_.size());
  return i;
}

std::vector<Tensor> Optimizer::parameters(size_t group) const {
  std::vector<Tensor> list;
  for (const Slot& slot : groups_[checked_group(group)].slots) list.push_back(slot.parameter);
  return list;
}

std::vector<Tensor> Optimizer::parameters() const {
  std::vector<Tensor> list;
  for (const Group& group : groups_)
    for (const Slot& slot : group.slots) list.push_back(slot.parameter);
  return list;
}

Tensor Optimizer::new_state(const Tensor& parameter) {
  Tensor x = empty_like(parameter);
  x.impl()->storage->set_purpose(Purpose::optimizer);
  return zero_(x);
}

void Optimizer::step() {
  Scope scope(name());
  NoGradGuard no_grad;
  for (size_t i = 0; i < groups_.size(); ++i) {
    std::vector<Ready> ready;
    ready.reserve(groups_[i].slots.size());
    for (Slot& slot : groups_[i].slots) {
      Tensor gradient = slot.parameter.grad();
      if (!gradient.defined()) continue;
      if (!(gradient.strides() == slot.parameter.strides())) {
        Tensor moved = empty_like(slot.parameter);
        copy_(moved, gradient);
        gradient = moved;
      }
      ++slot.steps;
      ready.push_back({&slot, std::move(gradient)});
    }
    if (!ready.empty()) step_group(i, ready);
  }
}

// ---- State ----

namespace {
std::string group_prefix(size_t i) { return "group." + std::to_string(i) + "."; }
std::string shape_text(const Tensor& x) { return to_text(x.dtype()) + to_text(x.shape()); }
}  // namespace

State Optimizer::state_dict() const {
  State state;
  state.set("optimizer", name());
  state.set("groups", std::to_string(groups_.size()));
  for (size_t i = 0; i < groups_.size(); ++i) {
    state.set(group_prefix(i) + "initial_lr", to_text(groups_[i].initial_lr));
    SettingWriter writer(state, group_prefix(i));
    const_cast<Optimizer*>(this)->visit_settings(i, writer);
    for (const Slot& slot : groups_[i].slots) {
      state.set("parameter." + slot.name, shape_text(slot.parameter));
      state.set("group_of." + slot.name, std::to_string(i));
      state.set("steps." + slot.name, std::to_string(slot.steps));
      int k = 0;
      for (const char* what : state_names()) {
        if (const Tensor& x = slot.state[k++]; x.defined())
          state.tensors.emplace_back(slot.name + "." + what, x);
      }
    }
  }
  return state;
}

// Compares a saved state with an optimizer, and only then takes it over.
class Optimizer::Loader {
 public:
  Loader(Optimizer& optimizer, const State& state, LoadOptions options)
      : optimizer_(optimizer), state_(state), options_(options) {
    for (const auto& [key, value] : state.values)
      if (!values_.emplace(key, &value).second) fail_with(key + " stands in it twice");
    for (const auto& [key, tensor] : state.tensors)
      if (!tensors_.emplace(key, &tensor).second) fail_with(key + " stands in it twice");
  }

  void check_all() {
    if (state_.text("optimizer") != optimizer_.name())
      fail_with("it is of " + state_.text("optimizer"));
    if (state_.integer("groups") != int64_t(optimizer_.groups_.size()))
      fail_with("it has " + state_.text("groups") + " parameter groups, this optimizer " +
                std::to_string(optimizer_.groups_.size()));
    for (size_t i = 0; i < optimizer_.groups_.size(); ++i) {
      state_.number(group_prefix(i) + "initial_lr");
      SettingReader reader(state_, group_prefix(i), /*apply=*/false);
      optimizer_.visit_settings(i, reader);
      for (const Slot& slot : optimizer_.groups_[i].slots) check_slot(slot, i);
    }
    constexpr std::string_view kParameter = "parameter.";
    for (const auto& [key, value] : state_.values)
      if (key.starts_with(kParameter) && !known_.contains(key.substr(kParameter.size())))
        differences_.push_back(key.substr(kParameter.size()) + " is in the state only");
    if (differences_.empty()) return;
    constexpr size_t kMost = 12;
    std::string text;
    for (size_t i = 0; i < differences_.size() && i < kMost; ++i)
      text += (i ? "; " : "") + differences_[i];
    if (differences_.size() > kMost)
      text += "; and " + std::to_string(differences_.size() - kMost) + " more";
    fail_with(text);
  }

  void take() {
    for (size_t i = 0; i < optimizer_.groups_.size(); ++i) {
      Group& group = optimizer_.groups_[i];
      group.initial_lr = state_.number(group_prefix(i) + "initial_lr");
      SettingReader reader(state_, group_prefix(i), /*apply=*/true);
      optimizer_.visit_settings(i, reader);
      for (Slot& slot : group.slots) take_slot(slot);
    }
  }

 private:
  [[noreturn]] void fail_with(const std::string& what) {
    fail<ValueError>(optimizer_.name(), "cannot take over the saved state:", what);
  }

  const std::string* value(const std::string& key) const {
    auto found = values_.find(key);
    return found == values_.end() ? nullptr : found->second;
  }

  void check_slot(const Slot& slot, size_t group) {
    known_.insert(slot.name);
    const std::string* saved = value("parameter." + slot.name);
    if (!saved) {
      if (!options_.allow_new) differences_.push_back(slot.name + " is not in the state");
      return;
    }
    if (*saved != shape_text(slot.parameter)) {
      differences_.push_back(slot.name + " is " + shape_text(slot.parameter) + " here and " +
                             *saved + " in the state");
      return;
    }
    if (state_.integer("steps." + slot.name) < 0)
      fail_with(slot.name + " has taken " + state_.text("steps." + slot.name) + " steps");
    const std::string* of = value("group_of." + slot.name);
    if (!of || *of != std::to_string(group))
      differences_.push_back(slot.name + " is in group " + std::to_string(group) + " here and " +
                             (of ? *of : "none") + " in the state");
    for (const char* what : optimizer_.state_names())
      if (auto found = tensors_.find(slot.name + "." + what);
          found != tensors_.end() && !found->second->defined())
        differences_.push_back(slot.name + "." + what + " is undefined in the state");
      else if (found != tensors_.end() && shape_text(*found->second) != shape_text(slot.parameter))
        differences_.push_back(slot.name + "." + what + " is " + shape_text(*found->second) +
                               " in the state, its parameter " + shape_text(slot.parameter));
  }

  void take_slot(Slot& slot) {
    slot.steps = value("parameter." + slot.name) ? state_.integer("steps." + slot.name) : 0;
    int k = 0;
    for (const char* what : optimizer_.state_names()) {
      Tensor& mine = slot.state[k++];
      auto found = tensors_.find(slot.name + "." + what);
      mine = {};
      if (found == tensors_.end()) continue;
      mine = new_state(slot.parameter);
      copy_(mine, found->second->to(slot.parameter.device()));
    }
  }

  Optimizer& optimizer_;
  const State& state_;
  LoadOptions options_;
  std::unordered_map<std::string, const std::string*> values_;
  std::unordered_map<std::string, const Tensor*> tensors_;
  std::unordered_set<std::string> known_;
  std::vector<std::string> differences_;
};

void Optimizer::check_state_dict(const State& state, LoadOptions options) {
  Loader(*this, state, options).check_all();
}

void Optimizer::load_state_dict(const State& state, LoadOptions options) {
  NoGradGuard no_grad;
  Loader loader(*this, state, options);
  loader.check_all();
  loader.take();
}

}  // namespace tg::optim
