#include "tapegrad/nn/module.h"

#include <cxxabi.h>

#include <cstdlib>
#include <typeinfo>

#include "tapegrad/autograd/grad_mode.h"
#include "tapegrad/autograd/leaf_node.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/nn/walk.h"

namespace tg::nn {

using detail::Members;
using detail::Seen;
using detail::walk;
using detail::walk_tensors;

Parameter::Parameter(Tensor t, bool requires_grad) : Tensor(std::move(t)) {
  if (!defined()) return;
  check<AutogradError>(is_leaf(),
                       "a parameter cannot be the result of a recorded computation: "
                       "detach() it first");
  if (requires_grad) requires_grad_(true);
  impl()->storage->set_purpose(Purpose::parameter);
}

Buffer::Buffer(Tensor t) : Tensor(std::move(t)) {
  if (defined()) impl()->storage->set_purpose(Purpose::parameter);
}

// ---- Who is running ----

namespace {

// "tg::nn::Linear" -> "Linear"; what stands inside of template brackets or a function's
// parentheses is not looked at.
std::string short_type_name(const char* mangled) {
  int status = 0;
  char* demangled = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  std::string name = demangled ? demangled : mangled;
  std::free(demangled);
  int depth = 0;
  for (size_t i = name.size(); i-- > 1;) {
    char c = name[i];
    if (c == '>' || c == ')') ++depth;
    if (c == '<' || c == '(') --depth;
    if (depth == 0 && c == ':' && name[i - 1] == ':') return name.substr(i + 1);
  }
  return name;
}

std::string scope_type_name(const void* module) {
  return static_cast<const Module*>(module)->type_name();
}

bool find_below(const Module& parent, const Module* child, std::string& name) {
  Members members(parent);
  for (const NamedModule& m : members.modules) {
    if (m.module == child) {
      name = m.name;
      return true;
    }
    if (find_below(*m.module, child, name)) {  // its call was bypassed with .forward
      name = m.name + "." + name;
      return true;
    }
  }
  return false;
}

bool scope_child_name(const void* parent, const void* child, std::string& name) {
  return find_below(*static_cast<const Module*>(parent), static_cast<const Module*>(child), name);
}

}  // namespace

detail::ModuleScope::ModuleScope(const Module& module)
    : Scope(static_cast<const void*>(&module), &scope_type_name, &scope_child_name) {}

void detail::collect(std::vector<Tensor>& out, const Tensor& argument) { out.push_back(argument); }
void detail::collect(std::vector<Tensor>& out, const std::vector<Tensor>& argument) {
  out.insert(out.end(), argument.begin(), argument.end());
}

std::string detail::next_name(const char*& list) {
  while (*list == ' ' || *list == ',') ++list;
  const char* begin = list;
  while (*list != 0 && *list != ',' && *list != ' ') ++list;
  return {begin, list};
}
std::string detail::numbered(const std::string& name, int i) {
  return name + "." + std::to_string(i);
}

Module::~Module() = default;
std::string Module::type_name() const { return short_type_name(typeid(*this).name()); }
int64_t Module::flops(const std::vector<Tensor>&, const Tensor&) const { return 0; }
void Module::visit_members(MemberVisitor&) {}

// ---- What it is made of ----

NamedTensors Module::named_parameters() const {
  NamedTensors found;
  Seen seen;
  walk_tensors(*this, [&](std::string name, Tensor& x, bool is_parameter) {
    if (is_parameter && seen.first_time(x)) found.emplace_back(std::move(name), x);
  });
  return found;
}

NamedTensors Module::named_buffers() const {
  NamedTensors found;
  Seen seen;
  walk_tensors(*this, [&](std::string name, Tensor& x, bool is_parameter) {
    if (!is_parameter && seen.first_time(x)) found.emplace_back(std::move(name), x);
  });
  return found;
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> found;
  for (auto& [name, p] : named_parameters()) found.push_back(std::move(p));
  return found;
}

std::vector<NamedModule> Module::named_modules() const {
  std::vector<NamedModule> found;
  walk(*this, "", [&](const std::string& path, Module& m, const Members&) {
    found.push_back({path.empty() ? "" : path.substr(0, path.size() - 1), &m});
  });
  return found;
}

std::vector<NamedModule> Module::children() const { return Members(*this).modules; }

int64_t Module::parameter_count() const {
  int64_t n = 0;
  for (const Tensor& p : parameters()) n += p.numel();
  return n;
}

// ---- Changing all of it ----

namespace {

// Gives x the memory, dtype and device of `fresh`; the tensor itself stays, with whoever holds it.
void take_contents(const Tensor& x, const Tensor& fresh) {
  if (x.same(fresh)) return;
  TensorImpl &to = *x.impl(), &from = *fresh.impl();
  to.storage = from.storage;
  to.dtype = from.dtype;
  to.offset = from.offset;
  to.numel = from.numel;
  to.shape = from.shape;
  to.strides = from.strides;
  to.storage->set_purpose(Purpose::parameter);
  Meta* meta = meta_of(x);
  if (!meta || !meta->is_leaf || !meta->edge) return;
  auto& leaf = static_cast<LeafNode&>(*meta->edge.node);
  leaf.output = info_of(x);
  if (leaf.grad.defined()) leaf.grad = leaf.grad.to(x.dtype()).to(x.device()).detach();
}

}  // namespace

void Module::to(DType dtype) {
  check<DTypeError>(is_floating(dtype), "a model can be turned into f32, f64, f16 or bf16, not",
                    dtype);
  NoGradGuard no_grad;
  walk_tensors(*this, [&](const std::string&, Tensor& x, bool) {
    if (x.is_floating()) take_contents(x, x.to(dtype));
  });
}

void Module::to(Device device) {
  NoGradGuard no_grad;
  walk_tensors(*this, [&](const std::string&, Tensor& x, bool) { take_contents(x, x.to(device)); });
}

void Module::train(bool mode) {
  apply([mode](Module& m) { m.training_ = mode; });
}

void Module::zero_grad(bool set_to_none) {
  NoGradGuard no_grad;
  for (const Tensor& p : parameters()) {
    if (set_to_none)
      p.set_grad({});
    else if (Tensor g = p.grad(); g.defined())
      zero_(g);
  }
}

void Module::requires_grad_(bool value) {
  for (const Tensor& p : parameters()) p.requires_grad_(value);
}

void Module::apply(const Function<void(Module&)>& fn) {
  for (const NamedModule& m : children()) m.module->apply(fn);
  fn(*this);
}

EvalGuard::EvalGuard(Module& model) {
  for (const NamedModule& m : model.named_modules())
    modes_.push_back({m.module, m.module->is_training()});
  model.eval();
}

// Modules come before their members, so that a member's own mode is set last.
EvalGuard::~EvalGuard() {
  for (auto& [module, mode] : modes_) module->train(mode);
}

// ---- Hooks ----

Module::Hooks& Module::need_hooks() {
  if (!hooks_) hooks_ = std::make_shared<Hooks>();
  return *hooks_;
}

HookHandle Module::register_forward_pre_hook(ForwardPreHook hook) {
  Hooks& hooks = need_hooks();
  uint64_t id = hooks.next_id++;
  hooks.before.push_back({id, std::move(hook)});
  return HookHandle([weak = std::weak_ptr(hooks_), id] {
    if (auto h = weak.lock()) std::erase_if(h->before, [id](auto& x) { return x.id == id; });
  });
}

HookHandle Module::register_forward_hook(ForwardHook hook) {
  Hooks& hooks = need_hooks();
  uint64_t id = hooks.next_id++;
  hooks.after.push_back({id, std::move(hook)});
  return HookHandle([weak = std::weak_ptr(hooks_), id] {
    if (auto h = weak.lock()) std::erase_if(h->after, [id](auto& x) { return x.id == id; });
  });
}

// Both loops run over a copy: a hook may add hooks, or remove itself.
void Module::run_pre_hooks(const std::vector<Tensor>& inputs) {
  auto hooks = hooks_->before;
  for (auto& hook : hooks) hook.fn(*this, inputs);
}

Tensor Module::run_hooks(const std::vector<Tensor>& inputs, Tensor output) {
  auto hooks = hooks_->after;
  for (auto& hook : hooks) {
    Tensor replacement = hook.fn(*this, inputs, output);
    if (!replacement.defined()) continue;
    check(output.defined(), "a forward hook can replace the output of a module that returns one",
          "tensor, not of this one");
    output = std::move(replacement);
  }
  return output;
}

}  // namespace tg::nn
