// Softmax and its logarithm along one dimension, and their derivatives. f32, f64, f16, bf16 (the
// last two computed in f32), any strides, all operands of one shape and dtype.
#pragma once
#include "tapegrad/kernels/dispatch.h"

namespace tg::kernels {

// y = exp(x - max) / sum of the same
void softmax(Cpu, View x, MutView y, int64_t dim);
void softmax(Cuda, View x, MutView y, int64_t dim);
// y = x - max - log(sum of exp(x - max))
void log_softmax(Cpu, View x, MutView y, int64_t dim);
void log_softmax(Cuda, View x, MutView y, int64_t dim);
// dx = y (dy - sum of dy y)
void softmax_backward(Cpu, View y, View dy, MutView dx, int64_t dim);
void softmax_backward(Cuda, View y, View dy, MutView dx, int64_t dim);
// dx = dy - exp(y) sum of dy
void log_softmax_backward(Cpu, View y, View dy, MutView dx, int64_t dim);
void log_softmax_backward(Cuda, View y, View dy, MutView dx, int64_t dim);

}  // namespace tg::kernels
