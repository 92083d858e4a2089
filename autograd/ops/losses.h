// Losses. Shapes must match exactly: nothing is broadcast in silence.
#pragma once
#include "tapegrad/core/tensor.h"

namespace tg {

enum class Reduction { none, mean, sum };

struct CrossEntropyOptions {
  Tensor weight = {};           // [classes], scales each class's loss; mean divides by their sum
  int64_t ignore_index = -100;  // targets of this value count nothing
  double label_smoothing = 0;   // in [0, 1]
  Reduction reduction = Reduction::mean;
};
// logits [N,C] or [C] or [N,C,d1,..], target i64 [N] or [] or [N,d1,..], values in [0,C) or
// ignore_index (IndexError otherwise).
Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& o = {});
// As cross_entropy, of log-probabilities; no smoothing.
Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target,
                const CrossEntropyOptions& o = {});
Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);
Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, double beta = 1.0,
                      Reduction reduction = Reduction::mean);

struct BceOptions {
  Tensor weight = {};      // broadcast to the input, scales each element's loss
  Tensor pos_weight = {};  // broadcast to the input, scales the positive part
  Reduction reduction = Reduction::mean;
};
// (1 - t) x + (1 + (p - 1) t) (log(1 + e^-|x|) + max(-x, 0))
Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& target,
                                        const BceOptions& o = {});

}  // namespace tg
