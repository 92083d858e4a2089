// Rows of a table by index, and the sum of gradients back into the table. Everything contiguous;
// indices i64.
#pragma once
#include "tapegrad/kernels/dispatch.h"

namespace tg::kernels {

// y[i] = weight[indices[i]]; weight [count,dim], y [indices,dim], one dtype of any kind. IndexError
// naming position, value and range if an index is outside of [0,count).
void embedding(Cpu, View indices, View weight, MutView y);
void embedding(Cuda, View indices, View weight, MutView y);
// dweight[r] = sum of dy[i] over the i with indices[i] == r, in the order of i, whatever the number
// of threads; 0 for row `padding` (-1: none). f32, f64, f16, bf16 (the last two add up in f32).
void embedding_backward(Cpu, View indices, View dy, MutView dweight, int64_t padding);
void embedding_backward(Cuda, View indices, View dy, MutView dweight, int64_t padding);

}  // namespace tg::kernels
