// What all optimizers share: groups of parameters with settings of their own, and a state that is
// saved and matched by name.
#pragma once
#include <initializer_list>

#include "tapegrad/nn/module.h"
#include "tapegrad/optim/state.h"

namespace tg::optim {

// The parameters of a group. Names come from the model; a plain list of tensors is named by
// position ("0", "1", ...), and its saved state is then matched by position, as PyTorch's is.
class Parameters : public NamedTensors {
 public:
  Parameters(NamedTensors named) : NamedTensors(std::move(named)) {}
  Parameters(const std::vector<Tensor>& tensors);
  Parameters(std::initializer_list<Tensor> tensors) : Parameters(std::vector<Tensor>(tensors)) {}
  Parameters(const nn::Module& model) : NamedTensors(model.named_parameters()) {}
  bool by_position() const { return by_position_; }

 private:
  bool by_position_ = false;
};

struct LoadOptions {
  // Parameters that the saved state does not know start afresh instead of being an error.
  bool allow_new = false;
};

class Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;  // schedules keep a reference
  Optimizer& operator=(const Optimizer&) = delete;

  // Changes every parameter that has a gradient. Not recorded.
  void step();
  // set_to_none: gradients become undefined, and step() leaves such parameters alone.
  void zero_grad(bool set_to_none = true);

  size_t group_count() const { return groups_.size(); }
  // The parameters of one group, or of all of them.
  std::vector<Tensor> parameters(size_t group) const;
  std::vector<Tensor> parameters() const;

  virtual const char* name() const = 0;  // "AdamW"
  virtual double& lr(size_t group) = 0;
  // The rate a schedule starts from: lr at the time the group was made, or as loaded.
  double initial_lr(size_t group) const { return groups_[checked_group(group)].initial_lr; }

  // The tensors share the optimizer's memory.
  State state_dict() const;
  // The state of another optimizer of the same kind with parameters of the same names, shapes and
  // dtypes, in groups of the same members; their order does not matter. All is checked before
  // anything changes; the error names what differs. The settings of the groups are loaded too.
  void load_state_dict(const State& state, LoadOptions options = {});
  // The checks of load_state_dict alone.
  void check_state_dict(const State& state, LoadOptions options = {});

 protected:
  static constexpr int kMostTensors = 2;
  struct Slot {
    std::string name;
    Tensor parameter;
    int64_t steps = 0;  // taken with this parameter
    Tensor state[kMostTensors];
  };
  struct Group {
    std::vector<Slot> slots;
    double initial_lr = 0;
  };

  Optimizer() = default;
  size_t checked_group(size_t i) const;  // IndexError unless there is one
  // ValueError for no parameters, a tensor or a name that is already in this optimizer, or a
  // tensor that is no leaf of float type with dense memory.
  Group& add_slots(const Parameters& parameters, double lr);
  // One step over the slots of a group that have a gradient, which is given beside them with the
  // strides of the parameter.
  struct Ready {
    Slot* slot;
    Tensor gradient;
  };
  virtual void step_group(size_t group, std::vector<Ready>& ready) = 0;
  virtual std::initializer_list<const char*> state_names() const = 0;
  virtual void visit_settings(size_t group, SettingVisitor& visitor) = 0;
  // A state tensor of zeros like the parameter.
  static Tensor new_state(const Tensor& parameter);

 private:
  class Loader;
  std::vector<Group> groups_;
};

// Groups with settings of one kind. `group(0).lr = x` changes a setting.
template <class Options>
class GroupedOptimizer : public Optimizer {
 public:
  ~GroupedOptimizer() override;
  Options& group(size_t i) { return settings_[checked_group(i)]; }
  void add_group(const Parameters& parameters, Options options);
  double& lr(size_t group) final { return this->group(group).lr; }

 protected:
  virtual void check_options(const Options& options) const = 0;

 private:
  std::vector<Options> settings_;
};

template <class Options>
GroupedOptimizer<Options>::~GroupedOptimizer() = default;

template <class Options>
void GroupedOptimizer<Options>::add_group(const Parameters& parameters, Options options) {
  check_options(options);
  add_slots(parameters, options.lr);
  settings_.push_back(std::move(options));
}

}  // namespace tg::optim
