// Products of the last two dimensions.
#pragma once
#include "tapegrad/kernels/dispatch.h"

namespace tg::kernels {

// c[.., m, n] = a[.., m, k] b[.., k, n] + addend
//
// a, b    rank >= 2, any strides; batch dimensions are aligned at the end and broadcast to c's
// c       contiguous, of the broadcast shape, overlapping no operand
// addend  null, or of c's dtype and broadcast to c's shape: a bias [n], or c itself to add to it.
//         Old c is not read otherwise.
//
// One dtype for all: f32, f64, f16, bf16 (f16 and bf16 multiply and add in f32 and round once), or
// an integer type (which wraps around). k = 0 gives the addend or zeros.
void matmul(Cpu, View a, View b, MutView c, const View* addend = nullptr);
void matmul(Cuda, View a, View b, MutView c, const View* addend = nullptr);

}  // namespace tg::kernels
