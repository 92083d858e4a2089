// The gradient of a convolution towards its weight: a product over all pixels of all images.
#pragma once
#include "tapegrad/core/view.h"
#include "tapegrad/kernels/conv2d_axis.h"

namespace tg::kernels::conv {

// dweight[co][ci][ky][kx] = sum over n, oy, ox of dy[n][co][oy][ox] x[n][ci][..], with the axes of
// the forward convolution.
template <class T>
void weight_gradient(View x, View dy, MutView dweight, const Axis& h, const Axis& w,
                     int64_t groups);

}  // namespace tg::kernels::conv
