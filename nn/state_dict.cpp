#include "tapegrad/nn/state_dict.h"

#include <cstring>
#include <unordered_map>

#include "tapegrad/autograd/grad_mode.h"
#include "tapegrad/autograd/ops/comparison.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/nn/walk.h"

namespace tg::nn {

const Tensor* StateDict::find(const std::string& name) const {
  for (const auto& [key, tensor] : *this)
    if (key == name) return &tensor;
  return nullptr;
}

const Tensor& StateDict::at(const std::string& name) const {
  const Tensor* found = find(name);
  check<IndexError>(found != nullptr, "the state has no tensor named", name);
  return *found;
}

StateDict Module::state_dict() const {
  StateDict state;
  detail::walk_tensors(*this, [&](std::string name, Tensor& x, bool) {
    state.push_back({std::move(name), alias(x, x.shape(), x.strides(), x.offset())});
  });
  return state;
}

namespace {

// "missing: a, b, c and 4 more"
std::string list_names(const char* what, const std::vector<std::string>& names) {
  constexpr size_t kMost = 12;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMost; ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > kMost) text += " and " + std::to_string(names.size() - kMost) + " more";
  return std::string(what) + ": " + text;
}

// "module." if every unexpected name is that and a missing one: a wrapper was saved.
std::string common_prefix(const LoadReport& names) {
  if (names.missing.empty() || names.unexpected.empty()) return "";
  const std::string &want = names.missing[0], &have = names.unexpected[0];
  if (have.size() <= want.size() || !have.ends_with(want)) return "";
  std::string prefix = have.substr(0, have.size() - want.size());
  for (const std::string& name : names.unexpected)
    if (!name.starts_with(prefix)) return "";
  return prefix;
}

// Matches a state with a model and keeps what is to be copied where.
class Loader {
 public:
  Loader(const Module& model, const NamedTensors& state, bool strict)
      : model_(model), strict_(strict) {
    for (const auto& [name, tensor] : state)
      if (!by_name_.try_emplace(name, Entry{&tensor, false}).second) doubled_.push_back(name);
    detail::walk_tensors(model, [&](const std::string& name, Tensor& x, bool) { match(name, x); });
    for (const auto& [tensor, wait] : waiting_)
      if (!given_.contains(tensor))
        for (const std::string& name : wait) names_.missing.push_back(name);
    for (const auto& [name, tensor] : state)
      if (!by_name_[name].used) names_.unexpected.push_back(name);
  }

  void check_all() const {
    std::vector<std::string> parts;
    if (!doubled_.empty()) parts.push_back(list_names("twice in the state", doubled_));
    if (strict_ && !names_.missing.empty())
      parts.push_back(list_names("missing in the state", names_.missing));
    if (strict_ && !names_.unexpected.empty())
      parts.push_back(list_names("unexpected in the state", names_.unexpected));
    if (!differing_.empty()) parts.push_back(list_names("different", differing_));
    if (parts.empty()) return;
    std::string text;
    for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
    if (std::string prefix = strict_ ? common_prefix(names_) : ""; !prefix.empty())
      text += "; the state's names begin with \"" + prefix + "\": take it off";
    if (other_dtypes_ && strict_) text += "; strict = false casts floats";
    fail(model_.type_name() + ": the state does not fit, nothing was loaded:", text);
  }

  LoadReport take() {
    NoGradGuard no_grad;
    for (const Copy& c : copies_) copy_(c.to, *c.from);
    return std::move(names_);
  }

 private:
  struct Entry {
    const Tensor* tensor = nullptr;
    bool used = false;
  };
  static constexpr size_t kNoCopy = size_t(-1);
  struct Copy {
    Tensor to;
    const Tensor* from;
    std::string name;
  };

  void match(const std::string& name, const Tensor& x) {
    auto found = by_name_.find(name);
    if (found == by_name_.end()) {
      waiting_for(x).push_back(name);
      return;
    }
    found->second.used = true;
    const Tensor& value = *found->second.tensor;
    auto [given, first] = given_.try_emplace(x.impl(), kNoCopy);
    if (!value.defined() || !(value.shape() == x.shape())) {
      differing_.push_back(name + " is " + to_text(x) + " here and " + to_text(value) +
                           " in the state");
    } else if (value.dtype() != x.dtype() &&
               (strict_ || !value.is_floating() || !x.is_floating())) {
      differing_.push_back(name + " is " + to_text(x.dtype()) + " here and " +
                           to_text(value.dtype()) + " in the state");
      other_dtypes_ = true;
    } else if (first || given->second == kNoCopy) {
      given->second = copies_.size();
      copies_.push_back({x, &value, name});
    } else if (const Copy& other = copies_[given->second]; !equal(*other.from, value)) {
      differing_.push_back(other.name + " and " + name +
                           " are one tensor here and differ in the state");
    }
  }

  std::vector<std::string>& waiting_for(const Tensor& x) {
    for (auto& [tensor, wait] : waiting_)
      if (tensor == x.impl()) return wait;
    return waiting_.emplace_back(x.impl(), std::vector<std::string>()).second;
  }

  const Module& model_;
  bool strict_;
  bool other_dtypes_ = false;
  std::unordered_map<std::string, Entry> by_name_;
  std::unordered_map<const TensorImpl*, size_t> given_;  // which copy fills this tensor
  std::vector<std::pair<const TensorImpl*, std::vector<std::string>>> waiting_;  // names not found
  std::vector<Copy> copies_;
  std::vector<std::string> differing_, doubled_;
  LoadReport names_;
};

}  // namespace

LoadReport Module::load_state_dict(const NamedTensors& state, bool strict) {
  Loader loader(*this, state, strict);
  loader.check_all();
  return loader.take();
}

void Module::check_state_dict(const NamedTensors& state, bool strict) const {
  Loader(*this, state, strict).check_all();
}

}  // namespace tg::nn
