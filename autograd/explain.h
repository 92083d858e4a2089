// Why does nothing learn? Which parameters a loss reaches, and what arrives there.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "tapegrad/core/tensor.h"

namespace tg {

enum class GradState { ok, zero, not_finite, unreached, not_required };

struct GradReport {
  struct Entry {
    std::string name;
    GradState state;
    double norm = 0;  // of the gradient
  };
  std::vector<Entry> entries;
  // Where the tape behind the loss ends without a leaf: "linear, input 0". The data is expected
  // here; a layer's output that was detached shows up here too.
  std::vector<std::string> ends;
  bool healthy() const;      // every parameter that requires grad got a finite gradient, not zero
  std::string text() const;  // a line each for what is not ok
};
// Differentiates the loss without touching any grad(); the tape stays.
GradReport explain_grad(const Tensor& loss,
                        const std::vector<std::pair<std::string, Tensor>>& parameters);

}  // namespace tg
