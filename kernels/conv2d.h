// Convolution of images and its two adjoints: each is linear in both of its operands, and the
// backward of each one is made of the other two.
#pragma once
#include "tapegrad/core/view.h"
#include "tapegrad/kernels/dispatch.h"

namespace tg::kernels {

// Height first. Zeros stand around the image; groups divides input and output channels.
struct Conv2dGeometry {
  int64_t stride_h = 1, stride_w = 1;
  int64_t padding_h = 0, padding_w = 0;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t groups = 1;
};

// Shapes: x, dx [N,Cin,H,W]; weight, dweight [Cout,Cin/groups,kh,kw]; y, dy [N,Cout,H',W'], where
// H' = (H + 2 padding - dilation (kh - 1) - 1) / stride + 1 rounded down.
// All operands of one float dtype and any strides; f16 and bf16 are computed in f32 and rounded
// once. Results are written completely, and fastest where their channels lie next to each other.

// bias [Cout]; bias.data null: none.
void conv2d(Cpu, View x, View weight, View bias, MutView y, const Conv2dGeometry& geometry);
void conv2d(Cuda, View x, View weight, View bias, MutView y, const Conv2dGeometry& geometry);
void conv2d_backward_input(Cpu, View dy, View weight, MutView dx, const Conv2dGeometry& geometry);
void conv2d_backward_input(Cuda, View dy, View weight, MutView dx, const Conv2dGeometry& geometry);
void conv2d_backward_weight(Cpu, View x, View dy, MutView dweight, const Conv2dGeometry& geometry);
void conv2d_backward_weight(Cuda, View x, View dy, MutView dweight, const Conv2dGeometry& geometry);

// f32 convolutions of 3 x 3 with stride 1 and many channels run by Winograd's method, which rounds
// up to 2 times as much as a direct sum and spreads an infinity over a tile of 4 x 4 results. Off:
// always the direct sum. On by default; for the whole process.
bool fast_conv2d();
void set_fast_conv2d(bool on);

}  // namespace tg::kernels
