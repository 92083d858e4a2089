// Cross entropy of logits with class indices, and its derivative. With p = softmax of a row, t its
// target, w the class weights (1 if there are none), s the smoothing, C the number of classes:
//
//   b_c  = (1 - s) w_t [c = t] + s / C w_c        loss = -sum over c of b_c log p_c
//   d loss / d logit_c = (sum of b) p_c - b_c
//
// logits [N,C,...] of any strides, f32, f64, f16 or bf16; target i64, contiguous, one per row (a
// row is what remains when C is taken away). weight [C], loss and the like per row: contiguous, of
// the type that is computed in (f64 for f64, else f32).
#pragma once
#include "tapegrad/kernels/dispatch.h"

namespace tg::kernels {

struct CrossEntropy {
  int64_t ignore_index = -100;
  double smoothing = 0;
};

// IndexError naming row, value and range if a target is neither in [0,classes) nor ignored.
void check_targets(Cpu, View target, int64_t classes, int64_t ignore_index);
void check_targets(Cuda, View target, int64_t classes, int64_t ignore_index);

// losses [rows]: 0 where ignored. log_sums [rows]: log of the sum of exponentials, which the
// backward makes p from again. totals [2]: the sum of the losses, and of w_t over rows that count.
// weight.data may be null. Targets must have been checked.
void cross_entropy(Cpu, View logits, View target, View weight, MutView losses, MutView log_sums,
                   MutView totals, CrossEntropy options);
void cross_entropy(Cuda, View logits, View target, View weight, MutView losses, MutView log_sums,
                   MutView totals, CrossEntropy options);
// scale: one factor for all rows, or one a row. Ignored rows get exactly 0.
void cross_entropy_backward(Cpu, View logits, View target, View weight, View log_sums, View scale,
                            MutView dlogits, CrossEntropy options);
void cross_entropy_backward(Cuda, View logits, View target, View weight, View log_sums, View scale,
                            MutView dlogits, CrossEntropy options);

}  // namespace tg::kernels
