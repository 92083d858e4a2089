// The casts that operators make of their inputs inside an autocast region.
#pragma once
#include "tapegrad/autograd/op.h"

namespace tg {

// x as an operator with this rule shall see it. Recorded, so gradients flow back in x's type.
Tensor autocast_input(const Tensor& x, Cast rule);

// Inside, operators cast by their rule: products and convolutions run in `dtype` (bf16 or f16),
// softmax, losses and norms in f32. Regions nest; enabled = false opens a region without casts.
class Autocast {
 public:
  explicit Autocast(DType dtype = bf16, bool enabled = true);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool old_enabled_;
  DType old_dtype_;
};

}  // namespace tg
