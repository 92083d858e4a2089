// Reductions over dimensions, and scans.
//
// Shapes say what is reduced: y has x's rank, with size 1 in the dimensions that go. Sums of floats
// run in blocks of f32 whose totals are added in f64, so long sums are right; how the work is cut
// depends on the shape alone, so the bits do not depend on the number of threads.
#pragma once
#include "tapegrad/kernels/dispatch.h"

namespace tg::kernels {

enum class Reduce { sum, sum_of_squares, sum_of_sizes, prod, max, min };

// y = reduce(x) / divisor. Sums and products of an empty range are 0 and 1. The largest and the
// smallest are NaN if there is one; their range must not be empty, and y has x's dtype. Elsewhere
// y has any dtype; integers add up in i64.
void reduce(Cpu, Reduce how, View x, MutView y, double divisor = 1);
void reduce(Cuda, Reduce how, View x, MutView y, double divisor = 1);

// index (i64) = the first position along dim where x equals value, or both are NaN. value and index
// have x's shape with size 1 at dim.
void find_first(Cpu, View x, View value, MutView index, int dim);
void find_first(Cuda, View x, View value, MutView index, int dim);

// y[i] = x[0] + ... + x[i] along dim. One shape; integers are added in i64.
void cumsum(Cpu, View x, MutView y, int dim);
void cumsum(Cuda, View x, MutView y, int dim);

}  // namespace tg::kernels
