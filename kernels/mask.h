// Truth values that choose elements.
#pragma once
#include "tapegrad/core/scalar.h"
#include "tapegrad/kernels/dispatch.h"

namespace tg::kernels {

// y = mask ? value : x. x and mask (bool) broadcast to y; x has y's dtype and may be y itself.
void masked_fill(Cpu, View x, View mask, Scalar value, MutView y);
void masked_fill(Cuda, View x, View mask, Scalar value, MutView y);

// Elements of a contiguous x that are not zero (NaN counts).
int64_t count_nonzero(Cpu, View x);
int64_t count_nonzero(Cuda, View x);
// Their coordinates in row-major order: y is contiguous i64 [count, rank of x].
void nonzero(Cpu, View x, MutView y);
void nonzero(Cuda, View x, MutView y);

// y = x with zeros where column - row > diagonal (lower) or < diagonal (upper), in the last two
// dimensions. Same shape and dtype; y may be x itself.
void triangle(Cpu, View x, MutView y, int64_t diagonal, bool upper);
void triangle(Cuda, View x, MutView y, int64_t diagonal, bool upper);

}  // namespace tg::kernels
