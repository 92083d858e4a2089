// Going through the members of a module: what the functions of Module share.
#pragma once
#include <unordered_set>

#include "tapegrad/nn/module.h"

namespace tg::nn::detail {

// The direct members of one module by name.
struct Members final : MemberVisitor {
  struct Named {
    std::string name;
    Tensor* tensor;  // the Parameter or Buffer itself
  };
  std::vector<Named> parameters, buffers;
  std::vector<NamedModule> modules;

  explicit Members(const Module& m) { const_cast<Module&>(m).visit_members(*this); }
  void parameter(const std::string& name, Parameter& p) override {
    parameters.push_back({name, &p});
  }
  void buffer(const std::string& name, Buffer& b) override { buffers.push_back({name, &b}); }
  void module(const std::string& name, Module& m) override { modules.push_back({name, &m}); }
};

// fn(path, module) on the module and everything below it, depth first. path is "" or ends in ".".
template <class F>
void walk(const Module& module, const std::string& path, F&& fn) {
  Members members(module);
  fn(path, const_cast<Module&>(module), members);
  for (const NamedModule& m : members.modules) walk(*m.module, path + m.name + ".", fn);
}

// fn(name, tensor, is_parameter) in the order of a state dict: a module's parameters, its buffers,
// then its members'. Tied tensors come once per name.
template <class F>
void walk_tensors(const Module& module, F&& fn) {
  walk(module, "", [&](const std::string& path, Module&, const Members& members) {
    for (const auto& p : members.parameters) fn(path + p.name, *p.tensor, true);
    for (const auto& b : members.buffers) fn(path + b.name, *b.tensor, false);
  });
}

// Tells which tensors were met before.
class Seen {
 public:
  bool first_time(const Tensor& x) { return set_.insert(x.impl()).second; }

 private:
  std::unordered_set<const TensorImpl*> set_;
};

}  // namespace tg::nn::detail
