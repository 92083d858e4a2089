// Convolution and its adjoints, as implicit products: no matrix of windows is ever in memory. The
// adjoint towards the input is a convolution of dy for each phase of the stride
// (kernels/conv2d_axis.h), so it shares its kernels with the forward.
//
// Every dtype is computed in registers, 16-bit floats in f32, and rounded once.
#include "tapegrad/kernels/conv2d.h"

#include "tapegrad/kernels/cuda/conv2d/correlation.cuh"

namespace tg::kernels {
namespace {

using conv::backward_axis;
using conv::forward_axis;

gpu::ImageOperand operand(const View& v, int64_t groups) {
  return {const_cast<void*>(v.data), v.stride(0), v.stride(1), v.stride(2), v.stride(3),
          v.size(1) / groups};
}

// Which dimension of the weight belongs to the target's channels and which to the source's; the
// first is that of all groups, `per_group` of it each.
void set_kernel(gpu::Correlation& c, const View& weight, int target, int source,
                int64_t per_group) {
  c.kernel = weight.data;
  c.kernel_group = per_group * weight.stride(0);
  c.kernel_target = weight.stride(target);
  c.kernel_source = weight.stride(source);
  c.kernel_h = weight.stride(2);
  c.kernel_w = weight.stride(3);
}

// y as a correlation of x; the kernel is left out.
gpu::Correlation forward_correlation(View x, View y, const Shape& weight, const Conv2dGeometry& g) {
  gpu::Correlation c{};
  c.h = forward_axis(x.size(2), y.size(2), weight[2], g.stride_h, g.padding_h, g.dilation_h);
  c.w = forward_axis(x.size(3), y.size(3), weight[3], g.stride_w, g.padding_w, g.dilation_w);
  c.images = x.size(0);
  c.groups = g.groups;
  c.source = operand(x, g.groups);
  c.target = operand(y, g.groups);
  return c;
}

}  // namespace

void conv2d(Cuda, View x, View weight, View bias, MutView y, const Conv2dGeometry& g) {
  gpu::Correlation c = forward_correlation(x, y, weight.shape(), g);
  set_kernel(c, weight, /*target=*/0, /*source=*/1, c.target.channels);
  c.bias = bias.data;
  c.bias_step = bias.data ? bias.stride(0) : 0;
  gpu::correlate(c, x.dtype);
}

void conv2d_backward_input(Cuda, View dy, View weight, MutView dx, const Conv2dGeometry& g) {
  gpu::Correlation c{};
  c.images = dx.size(0);
  c.groups = g.groups;
  c.source = operand(dy, g.groups);
  c.target = operand(dx, g.groups);
  set_kernel(c, weight, /*target=*/1, /*source=*/0, c.source.channels);
  for (int64_t phase_h = 0; phase_h < g.stride_h; ++phase_h)
    for (int64_t phase_w = 0; phase_w < g.stride_w; ++phase_w) {
      c.h = backward_axis(dx.size(2), dy.size(2), weight.size(2), g.stride_h, g.padding_h,
                          g.dilation_h, phase_h);
      c.w = backward_axis(dx.size(3), dy.size(3), weight.size(3), g.stride_w, g.padding_w,
                          g.dilation_w, phase_w);
      gpu::correlate(c, dy.dtype);
    }
}

void conv2d_backward_weight(Cuda, View x, View dy, MutView dweight, const Conv2dGeometry& g) {
  gpu::weight_gradient(forward_correlation(x, dy, dweight.shape(), g), dweight);
}

}  // namespace tg::kernels
