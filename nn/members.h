// What a module is made of: parameters, buffers and other modules, visited by name.
#pragma once
#include <array>
#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tapegrad/core/tensor.h"

namespace tg::nn {

// A tensor that training changes. Made from a tensor of float type it requires grad and its memory
// is counted as Purpose::parameter. An undefined Parameter (no bias) does not show up anywhere.
// Copying one shares it: `head.weight = embed.weight` ties the two, and parameters() counts them
// once.
struct Parameter : Tensor {
  Parameter() = default;
  Parameter(Tensor t) : Parameter(std::move(t), true) {}
  // AutogradError if t is the result of a recorded computation: detach() it first.
  Parameter(Tensor t, bool requires_grad);
};

// A tensor that belongs to the model's state but that no optimizer changes (running statistics).
// It is saved, loaded and moved like a parameter.
struct Buffer : Tensor {
  Buffer() = default;
  Buffer(Tensor t);
};

class Module;

// Sees the members of one module, in the order of their declaration in TG_MODULE.
struct MemberVisitor {
  virtual void parameter(const std::string& name, Parameter& parameter) = 0;
  virtual void buffer(const std::string& name, Buffer& buffer) = 0;
  virtual void module(const std::string& name, Module& module) = 0;

 protected:
  ~MemberVisitor() = default;
};

namespace detail {

template <class>
inline constexpr bool kNever = false;

// Cuts the next name off "conv, fc"; and "blocks", 3 -> "blocks.3".
std::string next_name(const char*& list);
std::string numbered(const std::string& name, int i);

// One member: a parameter, a buffer, a module, or a container of them ("blocks.0", "blocks.1").
template <class T>
void visit_member(MemberVisitor& v, const std::string& name, T& member) {
  if constexpr (std::derived_from<T, Parameter>) {
    if (member.defined()) v.parameter(name, member);
  } else if constexpr (std::derived_from<T, Buffer>) {
    if (member.defined()) v.buffer(name, member);
  } else if constexpr (std::derived_from<T, Module>) {
    v.module(name, member);
  } else if constexpr (requires { member.module(); }) {  // AnyModule
    if (member) v.module(name, member.module());
  } else if constexpr (requires { member.begin(); }) {  // std::vector, std::array
    int i = 0;
    for (auto& m : member) visit_member(v, numbered(name, i++), m);
  } else if constexpr (std::is_array_v<T>) {
    int i = 0;
    for (auto& m : member) visit_member(v, numbered(name, i++), m);
  } else if constexpr (requires { *member; }) {  // std::unique_ptr, std::optional
    if (member) visit_member(v, name, *member);
  } else {
    static_assert(kNever<T>,
                  "TG_MODULE names modules, nn::Parameter and nn::Buffer, or vectors, arrays, "
                  "unique_ptr and optional of them; a plain Tensor is one or the other");
  }
}

template <class... Members>
void visit_named([[maybe_unused]] MemberVisitor& v, [[maybe_unused]] const char* names,
                 Members&... members) {
  (visit_member(v, next_name(names), members), ...);
}

}  // namespace detail
}  // namespace tg::nn
