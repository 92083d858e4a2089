// Order along a dimension. NaN counts as the largest value, all NaNs and both zeros as equal; equal
// values keep the order of their indices, whichever way is sorted.
#pragma once
#include "tapegrad/kernels/dispatch.h"

namespace tg::kernels {

// values and indices (i64) have x's shape; values has x's dtype.
void sort(Cpu, View x, int dim, bool descending, MutView values, MutView indices);
void sort(Cuda, View x, int dim, bool descending, MutView values, MutView indices);

// The first k of that order, k being the size of dim in values and indices.
void topk(Cpu, View x, int dim, bool largest, MutView values, MutView indices);
void topk(Cuda, View x, int dim, bool largest, MutView values, MutView indices);

}  // namespace tg::kernels
