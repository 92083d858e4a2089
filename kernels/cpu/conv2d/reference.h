// Convolution as its definition says it: seven loops and one product. Slow; what the fast kernels
// are held against, and the place to read first.
#pragma once
#include "tapegrad/kernels/conv2d.h"

namespace tg::kernels::conv {

// f32 or f64, as conv2d, conv2d_backward_input and conv2d_backward_weight; sums in f64.
void reference(View x, View weight, View bias, MutView y, const Conv2dGeometry& geometry);
void reference_backward_input(View dy, View weight, MutView dx, const Conv2dGeometry& geometry);
void reference_backward_weight(View x, View dy, MutView dweight, const Conv2dGeometry& geometry);

}  // namespace tg::kernels::conv
