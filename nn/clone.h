// A second model with weights of its own.
#pragma once
#include <concepts>

#include "tapegrad/nn/init.h"
#include "tapegrad/nn/module.h"

namespace tg::nn {

namespace detail {

// Gives `to` copies of the tensors of `from` (dtype, device, requires_grad, ties) and its modes.
// An error unless both have the same names.
void copy_state(const Module& from, Module& to);

template <class M>
M remake(const M& model) {
  if constexpr (requires {
                  { model.remake() } -> std::same_as<M>;
                })
    return model.remake();
  else if constexpr (std::default_initializable<M>)
    return M();
  else
    fail(model.type_name() +
         " cannot be cloned: give it a default constructor, or a function remake() const that "
         "makes one of the same sizes");
}

}  // namespace detail

// The model is made anew, by its remake() or else its default constructor, without drawing random
// numbers, and filled from this one. Hooks are not copied.
template <std::derived_from<Module> M>
M clone(const M& model) {
  init::SkipInit skip;
  M copy = detail::remake(model);
  detail::copy_state(model, copy);
  return copy;
}

}  // namespace tg::nn
