#include "tapegrad/autograd/ops/conv.h"

#include <algorithm>
#include <limits>

#include "tapegrad/autograd/geometry.h"
#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops/reduction.h"
#include "tapegrad/kernels/conv2d.h"

namespace tg {
namespace {

// A convolution y = x * w is linear in x and in w, and so are its adjoints
//   dx = adjoint_x(dy, w)    dw = adjoint_w(x, dy)
// Each of the three is the derivative of the other two towards one of their operands, so any order
// of derivative is made of these three operators.
struct Adjoint {
  kernels::Conv2dGeometry geometry;
  Shape x_shape, w_shape;
};
Tensor convolve(const Op& op, const Tensor& x, const Tensor& w, const Tensor& bias,
                const Adjoint& a);
Tensor adjoint_x(const Tensor& dy, const Tensor& w, const Adjoint& a);
Tensor adjoint_w(const Tensor& x, const Tensor& dy, const Adjoint& a);

int64_t output_size(int64_t input, int64_t kernel, int64_t stride, int64_t padding,
                    int64_t dilation) {
  return (input + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
}

Shape output_shape(const Adjoint& a) {
  const kernels::Conv2dGeometry& g = a.geometry;
  return {a.x_shape[0], a.w_shape[0],
          output_size(a.x_shape[2], a.w_shape[2], g.stride_h, g.padding_h, g.dilation_h),
          output_size(a.x_shape[3], a.w_shape[3], g.stride_w, g.padding_w, g.dilation_w)};
}

// The layout in which a convolution is fastest: the channels of a pixel next to each other.
Tensor empty_image(const Shape& shape, const TensorOptions& options) {
  return empty_strided(shape, channels_last_strides(shape), options);
}

// The gradient of one factor needs the other one.
Saved save_for(const Tensor& factor, const Tensor& other) {
  return requires_grad(other) ? Saved::input(factor) : Saved();
}

// y = x * w + bias    dx = adjoint_x(dy, w)    dw = adjoint_w(x, dy)    db = sum of dy's pixels
Tensor convolve(const Op& op, const Tensor& x, const Tensor& w, const Tensor& bias,
                const Adjoint& a) {
  Tensor y = empty_image(output_shape(a), x.options());
  on(x.device(), [&](auto device) {
    kernels::conv2d(device, x.read(), w.read(), bias.defined() ? bias.read() : View{}, y.write(),
                    a.geometry);
  });
  return op.record(
      y, {x, w, bias},
      [x = save_for(x, w), w = save_for(w, x), a](const Tensor& dy, Needs needs) -> Grads {
        Grads grads(3);
        if (needs[0]) grads[0] = adjoint_x(dy, w.get(), a);
        if (needs[1]) grads[1] = adjoint_w(x.get(), dy, a);
        if (needs[2]) grads[2] = sum(dy, std::vector<int64_t>{0, 2, 3});
        return grads;
      });
}

Tensor convolve(const Tensor& x, const Tensor& w, const Adjoint& a) {
  Op op("conv2d");
  return convolve(op, x, w, {}, a);
}

// dx = adjoint_x(dy, w)    d(dy) = ddx * w    dw = adjoint_w(ddx, dy)
Tensor adjoint_x(const Tensor& dy, const Tensor& w, const Adjoint& a) {
  Op op("conv2d_backward_input");
  Tensor dx = empty_image(a.x_shape, dy.options());
  on(dy.device(), [&](auto device) {
    kernels::conv2d_backward_input(device, dy.read(), w.read(), dx.write(), a.geometry);
  });
  return op.record(
      dx, {dy, w},
      [dy = save_for(dy, w), w = save_for(w, dy), a](const Tensor& ddx, Needs needs) -> Grads {
        Grads grads(2);
        if (needs[0]) grads[0] = convolve(ddx, w.get(), a);
        if (needs[1]) grads[1] = adjoint_w(ddx, dy.get(), a);
        return grads;
      });
}

// dw = adjoint_w(x, dy)    dx = adjoint_x(dy, ddw)    d(dy) = x * ddw
Tensor adjoint_w(const Tensor& x, const Tensor& dy, const Adjoint& a) {
  Op op("conv2d_backward_weight");
  Tensor dw = empty(a.w_shape, x.options());
  on(x.device(), [&](auto device) {
    kernels::conv2d_backward_weight(device, x.read(), dy.read(), dw.write(), a.geometry);
  });
  return op.record(
      dw, {x, dy},
      [x = save_for(x, dy), dy = save_for(dy, x), a](const Tensor& ddw, Needs needs) -> Grads {
        Grads grads(2);
        if (needs[0]) grads[0] = adjoint_x(dy.get(), ddw, a);
        if (needs[1]) grads[1] = convolve(x.get(), ddw, a);
        return grads;
      });
}

// Rows and columns that are only padding are still counted, and some are kept: more than this would
// run out of memory or out of 63 bits.
constexpr int64_t kMostPadding = int64_t(1) << 30;

// From the first to the last pixel that a kernel looks at, along one axis; as much as can be
// counted where it is more.
int64_t reach_of(int64_t kernel, int64_t dilation) {
  int64_t reach = 0;
  bool counts = !__builtin_mul_overflow(dilation, kernel - 1, &reach) &&
                !__builtin_add_overflow(reach, 1, &reach);
  return counts ? reach : std::numeric_limits<int64_t>::max();
}

// Strides and dilations that mean the same in smaller numbers: a stride over all of the image, and
// gaps of a kernel that has one row or column, could leave 63 bits in a kernel's sums.
Size2 least_stride(const Size2& stride, const Tensor& x, const Tensor& w, const Conv2dOptions& o) {
  const auto room = [](int64_t size, int64_t padding, int64_t kernel, int64_t dilation) {
    return size + 2 * padding - reach_of(kernel, dilation);
  };
  return {std::min(stride.h, room(x.size(2), o.padding.h, w.size(2), o.dilation.h) + 1),
          std::min(stride.w, room(x.size(3), o.padding.w, w.size(3), o.dilation.w) + 1)};
}
Size2 least_dilation(const Size2& dilation, const Tensor& w) {
  return {w.size(2) > 1 ? dilation.h : 1, w.size(3) > 1 ? dilation.w : 1};
}

void check_options(const Conv2dOptions& o) {
  check<ValueError>(o.stride.h > 0 && o.stride.w > 0, "stride must be positive, got", o.stride);
  check<ValueError>(o.padding.h >= 0 && o.padding.w >= 0, "padding must not be negative, got",
                    o.padding);
  check<ValueError>(o.padding.h <= kMostPadding && o.padding.w <= kMostPadding,
                    "padding must be at most", kMostPadding, ", got", o.padding);
  check<ValueError>(o.dilation.h > 0 && o.dilation.w > 0, "dilation must be positive, got",
                    o.dilation);
  check<ValueError>(o.groups > 0, "groups must be positive, got", o.groups);
}

void check_shapes(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& o) {
  check<ShapeError>(x.dim() == 4, "takes images [N,C,H,W], got", x.shape(),
                    x.dim() == 3 ? "- unsqueeze(x, 0) makes a batch of one" : "");
  check<ShapeError>(w.dim() == 4, "weight is [out,in/groups,kh,kw], got", w.shape());
  check<ShapeError>(w.size(2) > 0 && w.size(3) > 0, "the kernel is empty, weight", w.shape());
  int64_t taken = 0;
  check<ValueError>(!__builtin_mul_overflow(w.size(1), o.groups, &taken), "groups", o.groups,
                    "of weight", w.shape(), "are more channels than can be counted");
  check<ShapeError>(x.size(1) == taken, "input", x.shape(), "has", x.size(1), "channels, weight",
                    w.shape(), "with groups", o.groups, "takes", taken);
  check<ShapeError>(w.size(0) % o.groups == 0, "groups", o.groups,
                    "does not divide the output channels of weight", w.shape());
  if (bias.defined()) {
    check<ShapeError>(bias.dim() == 1 && bias.size(0) == w.size(0), "bias of shape", bias.shape(),
                      "does not fit weight", w.shape());
  }
  check_sides(x);
  const Size2 padded{x.size(2) + 2 * o.padding.h, x.size(3) + 2 * o.padding.w};
  const Size2 reach{reach_of(w.size(2), o.dilation.h), reach_of(w.size(3), o.dilation.w)};
  check<ShapeError>(reach.h <= padded.h && reach.w <= padded.w, "kernel of", reach,
                    "(with dilation) is larger than the padded image of", padded, "- input",
                    x.shape(), "weight", w.shape());
}

void check_types(const Op& op, const Tensor& x, const Tensor& other) {
  op.same_device(x, other);
  check<DTypeError>(x.dtype() == other.dtype(), "operands differ in dtype:", x, other,
                    "- cast one with .to(dtype)");
}

}  // namespace

Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias,
              const Conv2dOptions& options) {
  Op op("conv2d", Cast::low);
  check(weight.defined(), "the weight is undefined");
  const Tensor x = op.in(input), w = op.in(weight), b = bias.defined() ? op.in(bias) : Tensor();
  check<DTypeError>(x.is_floating(), "works on floats, got", x, "- cast it with .to(f32)");
  check_types(op, x, w);
  if (b.defined()) check_types(op, x, b);
  check_options(options);
  check_shapes(x, w, b, options);
  const Size2 padding = options.padding, dilation = least_dilation(options.dilation, w);
  const Size2 stride = least_stride(options.stride, x, w, options);
  return convolve(
      op, x, w, b,
      {{stride.h, stride.w, padding.h, padding.w, dilation.h, dilation.w, options.groups},
       x.shape(),
       w.shape()});
}

}  // namespace tg
