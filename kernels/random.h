// Draws of random numbers. Element i depends on the state and on i alone (core/philox.h). Outputs
// are contiguous.
#pragma once
#include "tapegrad/core/philox.h"
#include "tapegrad/core/random.h"
#include "tapegrad/kernels/dispatch.h"

namespace tg::kernels {

// Blocks of the generator that n elements of a dtype take.
inline uint64_t random_blocks(int64_t n, DType dtype) {
  return blocks_for(n, size_of(dtype) == 8 ? 2 : 4);
}

// [low, high): never high, also not by rounding. Float dtypes.
void uniform(Cpu, MutView y, double low, double high, const RandomState& state);
void uniform(Cuda, MutView y, double low, double high, const RandomState& state);
void normal(Cpu, MutView y, double mean, double std, const RandomState& state);
void normal(Cuda, MutView y, double mean, double std, const RandomState& state);
// low + a whole number below `range` (0: all 2^64), in any dtype but bool; two elements a block.
void randint(Cpu, MutView y, int64_t low, uint64_t range, const RandomState& state);
void randint(Cuda, MutView y, int64_t low, uint64_t range, const RandomState& state);
// 1 with probability p[i], else 0; p is contiguous. f64 compares 53 bits, the others 24. ValueError
// for a probability outside of [0,1].
void bernoulli(Cpu, View p, MutView y, const RandomState& state);
void bernoulli(Cuda, View p, MutView y, const RandomState& state);

}  // namespace tg::kernels
