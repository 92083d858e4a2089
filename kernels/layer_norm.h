// Layer normalisation of the rows of x [rows, n], and its derivatives.
//
//   xhat = (x - mean) rstd          rstd = 1 / sqrt(variance + eps), variance divided by n
//   y    = xhat weight + bias
//   dx   = rstd (g - mean of g - xhat mean of (g xhat))    with g = dy weight
//   dweight = sum over rows of dy xhat        dbias = sum over rows of dy
//
// Everything contiguous and of one dtype (f32, f64, f16, bf16), but mean and rstd [rows], which
// have the type that is computed in (f64 for f64, else f32). data of weight and bias may be null.
#pragma once
#include "tapegrad/kernels/dispatch.h"

namespace tg::kernels {

void layer_norm(Cpu, View x, View weight, View bias, MutView y, MutView mean, MutView rstd,
                double eps);
void layer_norm(Cuda, View x, View weight, View bias, MutView y, MutView mean, MutView rstd,
                double eps);
// data of dx, dweight, dbias may be null: not wanted.
void layer_norm_backward(Cpu, View x, View dy, View weight, View mean, View rstd, MutView dx,
                         MutView dweight, MutView dbias);
void layer_norm_backward(Cuda, View x, View dy, View weight, View mean, View rstd, MutView dx,
                         MutView dweight, MutView dbias);

}  // namespace tg::kernels
