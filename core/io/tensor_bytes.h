// The elements of a tensor as a stream of bytes in row-major order. Private to core/io.
#pragma once

#include "tapegrad/core/function.h"
#include "tapegrad/core/tensor.h"

namespace tg::io {

// Calls write(data, bytes) for the elements of x, in pieces, in logical order, little-endian.
// DeviceError unless x is on the CPU.
void for_each_piece(const Tensor& x, const Function<void(const char*, size_t)>& write);

// Values of a bool are 0 and 1 in memory; what a file holds beside 0 counts as 1.
void normalise_bools(const Tensor& x);

}  // namespace tg::io
