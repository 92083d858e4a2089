// Limiting gradients before a step.
#pragma once
#include <vector>

#include "tapegrad/core/tensor.h"
#include "tapegrad/nn/module.h"

namespace tg::optim {

struct ClipOptions {
  double norm_type = 2;  // 1, 2, ..., or infinity: the largest magnitude
  bool error_if_nonfinite = false;
};

// The norm of all gradients taken as one vector; 0 if there are none. Added up in double, which
// squares of f32 cannot overflow. A tensor that is listed twice counts once.
double total_norm(const std::vector<Tensor>& parameters, double norm_type = 2);

// Scales the gradients by max_norm / (norm + 1e-6) where that is below 1, and returns the norm
// from before. ValueError for a max_norm that is negative or no number. A norm that is not finite:
// with error_if_nonfinite a ValueError, and nothing changes; else, as in PyTorch, an infinite norm
// makes finite gradients 0 and infinite ones NaN, and a NaN makes all NaN.
double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm,
                       ClipOptions options = {});
inline double clip_grad_norm_(const nn::Module& model, double max_norm, ClipOptions options = {}) {
  return clip_grad_norm_(model.parameters(), max_norm, options);
}

// Limits every element of every gradient to [-value, value]. ValueError unless value >= 0.
void clip_grad_value_(const std::vector<Tensor>& parameters, double value);
inline void clip_grad_value_(const nn::Module& model, double value) {
  clip_grad_value_(model.parameters(), value);
}

}  // namespace tg::optim
