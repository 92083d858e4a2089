// The weights of a model by name, and what is said when they do not fit.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "tapegrad/core/tensor.h"

namespace tg {

// The type that files of tensors are read and written as (core/io/safetensors.h), so that
// save_safetensors(path, model.state_dict()) and load_state_dict(load_safetensors(path)) fit.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

}  // namespace tg

namespace tg::nn {

// Parameters and buffers in the order of the model, "blocks.3.fc.weight". The tensors share the
// model's memory and have no history. A tied weight stands under each of its names, as in PyTorch.
class StateDict : public NamedTensors {
 public:
  using vector::vector;
  const Tensor* find(const std::string& name) const;  // nullptr if there is none
  const Tensor& at(const std::string& name) const;    // IndexError if there is none
};

// What load_state_dict left alone when it was not strict.
struct LoadReport {
  std::vector<std::string> missing;     // in the model, not in the state
  std::vector<std::string> unexpected;  // in the state, not in the model
};

}  // namespace tg::nn
