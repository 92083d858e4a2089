// One step of an optimizer over many tensors at once: one pass over memory, split over threads by
// chunks of elements, whatever the sizes of the tensors. And what clipping needs of gradients.
//
// All tensors of one entry have the same shape, dtype and dense strides (no gaps), f32, f64, f16
// or bf16; the 16-bit types compute in f32. Each element is computed on its own and sums run over
// fixed chunks in index order, so the bits do not depend on the number of threads.
#pragma once
#include <span>

#include "tapegrad/kernels/dispatch.h"

namespace tg::kernels {

// g = gradient (+ weight_decay p); buffer = first ? g : momentum buffer + (1 - dampening) g;
// p -= lr (nesterov ? g + momentum buffer : buffer). Without momentum p -= lr g.
struct SgdRule {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize;  // maximize: goes up the gradient
};
struct SgdEntry {
  MutView parameter;
  View gradient;
  MutView buffer;  // no data without momentum
  bool first;      // the buffer holds nothing yet
};
void sgd(Cpu, std::span<const SgdEntry> entries, const SgdRule& rule);
void sgd(Cuda, std::span<const SgdEntry> entries, const SgdRule& rule);

// m += (1 - beta1) (g - m); v = beta2 v + (1 - beta2) g^2;
// p -= lr / (1 - beta1^step) m / (sqrt(v) / sqrt(1 - beta2^step) + eps).
// Weight decay: g += weight_decay p before, or decoupled p *= 1 - lr weight_decay (AdamW).
struct AdamRule {
  double lr, beta1, beta2, eps, weight_decay;
  bool decoupled, maximize;
};
struct AdamEntry {
  MutView parameter;
  View gradient;
  MutView exp_avg, exp_avg_sq;  // m and v
  int64_t step;                 // counts from 1
};
void adam(Cpu, std::span<const AdamEntry> entries, const AdamRule& rule);
void adam(Cuda, std::span<const AdamEntry> entries, const AdamRule& rule);

// Sum of |x|^p over all elements of all tensors, added up in double. p > 0 and finite.
double sum_of_powers(Cpu, std::span<const View> tensors, double p);
double sum_of_powers(Cuda, std::span<const View> tensors, double p);
// Largest |x|; NaN if there is one; 0 for no elements.
double largest_magnitude(Cpu, std::span<const View> tensors);
double largest_magnitude(Cuda, std::span<const View> tensors);
// x *= factor, computed in double.
void scale(Cpu, std::span<const MutView> tensors, double factor);
void scale(Cuda, std::span<const MutView> tensors, double factor);
// x limited to [-limit, limit]; NaN stays.
void limit(Cpu, std::span<const MutView> tensors, double limit);
void limit(Cuda, std::span<const MutView> tensors, double limit);

}  // namespace tg::kernels
