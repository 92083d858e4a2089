// Scaled dot-product attention and its derivatives, without a [T,S] matrix in memory.
//
//   s = scale q k^T + mask        p = exp(s - l), l = log of the sum of exp(s) over the keys
//   y = d(p) v                    d: dropout (each weight 0, or divided by 1 - dropout)
//   dv = d(p)^T dy                dp = d(dy v^T)
//   ds = p (dp - sum of dy y)     dq = scale ds k        dk = scale ds^T q
//
// q [..,T,E], k [..,S,E], v [..,S,Ev], y [..,T,Ev], f32 or f64, of any strides but the last, which
// is 1; the same leading sizes (strides 0 broadcast). mask [..,T,S] of any strides, bool (true
// takes part) or q's dtype (added); data null: none. log_sums [..,T] contiguous. A query that sees
// no key gets y = 0, l = inf, and no gradient flows through it.
#pragma once
#include "tapegrad/kernels/dispatch.h"
#include "tapegrad/kernels/dropout.h"

namespace tg::kernels {

struct Attention {
  double scale = 1;
  bool causal = false;  // query i sees keys 0..i
  Dropout dropout;      // weight (i, j) of head h has the index attention_index(h, i, j, T, S)
};

// Where a weight stands in the stream of random numbers: queries next to each other, padded to
// whole groups of four.
constexpr int64_t attention_index(int64_t head, int64_t query, int64_t key, int64_t queries,
                                  int64_t keys) {
  return (head * keys + key) * ((queries + 3) / 4 * 4) + query;
}

void attention(Cpu, View q, View k, View v, View mask, MutView y, MutView log_sums, Attention o);
void attention(Cuda, View q, View k, View v, View mask, MutView y, MutView log_sums, Attention o);

struct AttentionSaved {
  View q, k, v, mask, y, log_sums;
};
// data of dq, dk, dv may be null: not wanted.
void attention_backward(Cpu, const AttentionSaved& saved, View dy, MutView dq, MutView dk,
                        MutView dv, Attention o);
void attention_backward(Cuda, const AttentionSaved& saved, View dy, MutView dq, MutView dk,
                        MutView dv, Attention o);
// keep [..,T,S] bool, contiguous: the weights that dropout leaves.
void attention_dropout_mask(Cpu, MutView keep, Dropout dropout);
void attention_dropout_mask(Cuda, MutView keep, Dropout dropout);

}  // namespace tg::kernels
