// Dropout: y[i] = x[i] / (1 - probability), or 0 with the given probability. Which elements go is a
// function of the random state and i alone, i counting in logical order, so the backward is the
// same kernel on the gradient, and nothing is kept.
#pragma once
#include "tapegrad/core/philox.h"
#include "tapegrad/kernels/dispatch.h"

namespace tg::kernels {

struct Dropout {
  double probability = 0;  // in [0,1]
  RandomState state;       // element i goes if word i % 4 of block i / 4, as a uniform, is less
};

// f32, f64, f16, bf16, any strides; x and y of one shape and dtype. Selects, so that what is
// dropped is 0 even if it was infinite or NaN.
void dropout(Cpu, View x, MutView y, Dropout dropout);
void dropout(Cuda, View x, MutView y, Dropout dropout);

}  // namespace tg::kernels
