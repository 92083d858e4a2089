// Who is running on this thread. Modules and operators push themselves; only an error, the
// profiler and the memory report walk the stack.
#pragma once
#include <string>

#include "tapegrad/core/profiler.h"
#include "tapegrad/core/thread_state.h"

namespace tg {

class Scope {
 public:
  // Finds the name of `child` inside `parent` ("blocks.3"); nn supplies it, core only calls it.
  using ChildName = bool (*)(const void* parent, const void* child, std::string& name);
  using TypeName = std::string (*)(const void* module);

  // An operator. The name must outlive the scope (a string literal).
  explicit Scope(const char* name) : name_(name), outer_(thread_state.scope) {
    thread_state.scope = this;
    if (profiler::active()) [[unlikely]]
      profiler::begin(*this);
  }
  // The backward of an operator; `path` (may be null) is the module it was recorded in.
  Scope(const char* name, const std::string* path)
      : name_(name), path_(path), backward_(true), outer_(thread_state.scope) {
    thread_state.scope = this;
    if (profiler::active()) [[unlikely]]
      profiler::begin(*this);
  }
  // A module.
  Scope(const void* module, TypeName type_name, ChildName child_name)
      : module_(module),
        type_name_(type_name),
        child_name_(child_name),
        outer_(thread_state.scope) {
    thread_state.scope = this;
    if (profiler::active()) [[unlikely]]
      profiler::begin(*this);
  }
  ~Scope() {
    if (profiler::active()) [[unlikely]]
      profiler::end(*this);
    thread_state.scope = outer_;
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  bool is_module() const { return module_ != nullptr; }
  bool is_backward() const { return backward_; }
  const char* name() const { return name_; }
  const Scope* outer() const { return outer_; }
  std::string type_name() const { return type_name_(module_); }

 private:
  friend std::string module_path();
  friend std::string running_prefix();
  const char* name_ = nullptr;
  const void* module_ = nullptr;
  TypeName type_name_ = nullptr;
  ChildName child_name_ = nullptr;
  const std::string* path_ = nullptr;
  bool backward_ = false;
  const Scope* outer_;
};

// "blocks.3.fc (Linear)" of the innermost module running on this thread; "" outside of modules.
std::string module_path();
// The outermost operator inside the innermost module: what the user called. nullptr if none.
const char* running_operator();

}  // namespace tg
