// Moving elements: copies between any two layouts and dtypes, and filling with one value.
#pragma once
#include "tapegrad/core/scalar.h"
#include "tapegrad/kernels/dispatch.h"

namespace tg::kernels {

// y = x, where x broadcasts to y's shape and is converted to y's dtype: float to integer cuts the
// fraction off, stops at the integer's bounds and makes NaN 0; to bool is "not zero"; integers
// that do not fit wrap around. x and y must not overlap unless they are the same elements.
void copy(Cpu, View x, MutView y);
void copy(Cuda, View x, MutView y);

// Every element of y becomes the value, converted as above.
void fill(Cpu, MutView y, Scalar value);
void fill(Cuda, MutView y, Scalar value);
// The bits of such an element, from the lowest on.
uint64_t bits_of(Scalar value, DType dtype);

}  // namespace tg::kernels
