// A module is a move-only struct with members and a forward; one line names its members:
//
//   struct Classifier : nn::Module {
//     nn::Conv2d conv{1, 32, 3, {.padding = 1}};
//     nn::Linear fc{32 * 14 * 14, 10};
//     TG_MODULE(conv, fc)
//     Tensor forward(const Tensor& x) { return fc(flatten(max_pool2d(relu(conv(x)), 2), 1)); }
//   };
//
// The line stands in the public part of a struct at namespace level (a class inside of a function
// cannot have templates). It gives the module its call operator, and every function
// of Module its members: names are those of the members, joined by dots, numbers inside of
// containers ("blocks.3.fc.weight"), which makes them PyTorch's.
#pragma once

#include "tapegrad/autograd/engine.h"
#include "tapegrad/core/function.h"
#include "tapegrad/core/scope.h"
#include "tapegrad/nn/members.h"
#include "tapegrad/nn/state_dict.h"

namespace tg::nn {

// Run at each call, before and after forward, with the arguments that are tensors. A forward hook
// may return a replacement of the output, or an undefined tensor to leave it. The output is
// undefined where forward does not return one tensor.
using ForwardPreHook = Function<void(Module&, const std::vector<Tensor>& inputs)>;
using ForwardHook =
    Function<Tensor(Module&, const std::vector<Tensor>& inputs, const Tensor& output)>;

struct NamedModule {
  std::string name;  // "" for the module itself
  Module* module;
};

class Module {
 public:
  Module() = default;
  virtual ~Module();
  // A copy would share the weights unseen. To have a second model: clone(model). To share one
  // weight: `head.weight = embed.weight`.
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  Module(Module&&) noexcept = default;
  Module& operator=(Module&&) noexcept = default;

  // ---- What it is made of ----
  // Each parameter once, though it may have two names; the first one counts.
  std::vector<Tensor> parameters() const;
  NamedTensors named_parameters() const;
  NamedTensors named_buffers() const;
  std::vector<NamedModule> named_modules() const;  // this one first, then depth first
  std::vector<NamedModule> children() const;       // direct members only
  int64_t parameter_count() const;                 // numbers, not tensors

  // ---- Saving and loading ----
  StateDict state_dict() const;
  // Copies the values in. Everything that does not fit is gathered in one error before anything
  // changes: missing, unexpected and doubled names, shapes, dtypes. A weight with two names may be
  // given under one of them, or under both with equal values. With strict = false names may differ
  // and floats are cast; shapes must still fit.
  LoadReport load_state_dict(const NamedTensors& state, bool strict = true);
  // The checks of load_state_dict alone.
  void check_state_dict(const NamedTensors& state, bool strict = true) const;

  // ---- Changing all of it ----
  // Parameters and buffers change their contents and stay the same tensors: optimizers and ties
  // hold. A dtype concerns floats only (DTypeError if it is not a float type itself).
  void to(DType dtype);
  void to(Device device);
  void train(bool mode = true);
  void eval() { train(false); }
  bool is_training() const { return training_; }
  // set_to_none: gradients become undefined, and optimizers skip them; else they become zeros.
  void zero_grad(bool set_to_none = true);
  void requires_grad_(bool value = true);
  // fn on every module, members before the module that holds them.
  void apply(const Function<void(Module&)>& fn);

  // ---- Looking on ----
  // Hooks run at m(x), not at m.forward(x). Handles stay valid when the module moves or dies.
  HookHandle register_forward_pre_hook(ForwardPreHook hook);
  HookHandle register_forward_hook(ForwardHook hook);
  bool has_hooks() const { return hooks_ && !(hooks_->before.empty() && hooks_->after.empty()); }

  // "Linear": the type without its namespace.
  std::string type_name() const;
  // Floating point operations of one call (a multiplication and an addition count as two); 0 for
  // what is not worth counting. summary() adds them up over the modules.
  virtual int64_t flops(const std::vector<Tensor>& inputs, const Tensor& output) const;

  // TG_MODULE writes this.
  virtual void visit_members(MemberVisitor& visitor);

  // For the call operator.
  void run_pre_hooks(const std::vector<Tensor>& inputs);
  Tensor run_hooks(const std::vector<Tensor>& inputs, Tensor output);

 protected:
  bool training_ = true;

 private:
  friend void copy_modes(const Module& from, Module& to);  // nn/clone.cpp
  template <class F>
  struct Hook {
    uint64_t id;
    F fn;
  };
  // Handles keep a weak reference.
  struct Hooks {
    std::vector<Hook<ForwardPreHook>> before;
    std::vector<Hook<ForwardHook>> after;
    uint64_t next_id = 1;
  };
  Hooks& need_hooks();
  std::shared_ptr<Hooks> hooks_;
};

// Eval mode as long as it lives; then each module gets back the mode that it had. The model must
// stay where it is.
class EvalGuard {
 public:
  explicit EvalGuard(Module& model);
  ~EvalGuard();
  EvalGuard(const EvalGuard&) = delete;
  EvalGuard& operator=(const EvalGuard&) = delete;

 private:
  std::vector<std::pair<Module*, bool>> modes_;
};

namespace detail {

// Puts a module on the scope stack, so that errors inside can say "blocks.3.fc (Linear)".
class ModuleScope : public Scope {
 public:
  explicit ModuleScope(const Module& module);
};

// The arguments that are tensors, for hooks.
void collect(std::vector<Tensor>& out, const Tensor& argument);
void collect(std::vector<Tensor>& out, const std::vector<Tensor>& argument);
template <class T>
void collect_if_tensor(std::vector<Tensor>& out, const T& argument) {
  if constexpr (std::derived_from<T, Tensor> || std::is_same_v<T, std::vector<Tensor>>)
    collect(out, argument);
}

template <class M, class... Args>
decltype(auto) call(M& module, Args&&... args) {
  ModuleScope scope(module);
  using Result = decltype(module.forward(std::forward<Args>(args)...));
  if (!module.has_hooks()) [[likely]]
    return module.forward(std::forward<Args>(args)...);
  std::vector<Tensor> inputs;
  (collect_if_tensor<std::remove_cvref_t<Args>>(inputs, args), ...);
  module.run_pre_hooks(inputs);
  if constexpr (std::is_same_v<Result, Tensor>) {
    return module.run_hooks(inputs, module.forward(std::forward<Args>(args)...));
  } else if constexpr (std::is_void_v<Result>) {
    module.forward(std::forward<Args>(args)...);
    module.run_hooks(inputs, {});
  } else {
    Result result = module.forward(std::forward<Args>(args)...);
    module.run_hooks(inputs, {});
    return result;
  }
}

}  // namespace detail
}  // namespace tg::nn

#define TG_MODULE(...)                                                               \
  template <class... Args>                                                           \
  decltype(auto) operator()(Args&&... args) {                                        \
    return ::tg::nn::detail::call(*this, std::forward<Args>(args)...);               \
  }                                                                                  \
  void visit_members([[maybe_unused]] ::tg::nn::MemberVisitor& visitor) override {   \
    ::tg::nn::detail::visit_named(visitor, #__VA_ARGS__ __VA_OPT__(, ) __VA_ARGS__); \
  }
