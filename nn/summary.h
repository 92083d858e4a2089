// What a model consists of and costs.
#pragma once
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/nn/module.h"

namespace tg::nn {

struct Summary {
  struct Row {
    std::string name;         // "" for the model itself
    std::string type;         // "Linear"
    Shape output;             // of its last call
    bool has_output = false;  // false: not called, or forward gives something else than a tensor
    int64_t parameters = 0;   // its own, without those of its members
    int64_t flops = 0;        // its own, over all its calls
  };
  std::vector<Row> rows;   // in the order of named_modules()
  int64_t parameters = 0;  // ties counted once
  int64_t trainable = 0;   // those that require grad
  int64_t parameter_bytes = 0;
  int64_t flops = 0;  // products of linear layers, convolutions and attention
  // A table, ready to print.
  std::string text() const;
};
inline std::string to_text(const Summary& s) { return s.text(); }

// Calls `run`, which is to run the model once, in eval mode and under no-grad.
Summary summarize(Module& model, const Function<void()>& run);

// For an input of this shape, of zeros.
template <std::derived_from<Module> M>
Summary summary(M& model, const Shape& input, TensorOptions options = {}) {
  return summarize(model, [&] { model(zeros(input, options)); });
}

}  // namespace tg::nn
