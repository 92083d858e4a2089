// Modules one after the other.
#pragma once
#include "tapegrad/nn/clone.h"
#include "tapegrad/nn/module.h"

namespace tg::nn {

// Any module that maps one tensor to one tensor. Empty when default-made.
class AnyModule {
 public:
  AnyModule() = default;
  template <std::derived_from<Module> M>
  AnyModule(M module) : step_(std::make_unique<Holder<M>>(std::move(module))) {}

  // An error if it is empty.
  Module& module() const { return step().module(); }
  Tensor operator()(const Tensor& x) const { return step().call(x); }
  explicit operator bool() const { return step_ != nullptr; }
  AnyModule remake() const { return step_ ? step_->remake() : AnyModule(); }

 private:
  struct Step {
    virtual ~Step() = default;
    virtual Module& module() = 0;
    virtual Tensor call(const Tensor& x) = 0;
    virtual AnyModule remake() const = 0;
  };
  template <class M>
  struct Holder final : Step {
    M held;
    explicit Holder(M m) : held(std::move(m)) {}
    Module& module() override { return held; }
    Tensor call(const Tensor& x) override { return held(x); }
    AnyModule remake() const override { return detail::remake(held); }
  };
  Step& step() const {
    check(step_ != nullptr, "an AnyModule that holds no module was used");
    return *step_;
  }
  std::unique_ptr<Step> step_;
};

// nn::Sequential net{nn::Linear(2, 16), nn::Tanh(), nn::Linear(16, 2)};
// State-dict names are the positions: "0.weight". Empty, it returns its input.
class Sequential : public Module {
 public:
  Sequential() = default;
  template <std::derived_from<Module>... M>
  requires(sizeof...(M) > 0) explicit Sequential(M... modules) {
    (push_back(std::move(modules)), ...);
  }
  void push_back(AnyModule module);  // ValueError for an empty one
  size_t size() const { return steps_.size(); }
  Module& operator[](size_t i) const;  // IndexError outside of [0, size)
  // The module at i as what it is: net.at<nn::Linear>(0).weight; an error if it is another type.
  template <class M>
  M& at(size_t i) const {
    auto* found = dynamic_cast<M*>(&(*this)[i]);
    check(found != nullptr, "Sequential: module", i, "is of type", (*this)[i].type_name());
    return *found;
  }

  Tensor operator()(const Tensor& x) { return detail::call(*this, x); }
  Tensor forward(const Tensor& x);
  void visit_members(MemberVisitor& visitor) override;
  Sequential remake() const;

 private:
  std::vector<AnyModule> steps_;
};

}  // namespace tg::nn
