#include "tapegrad/autograd/ops/pooling.h"

#include <algorithm>
#include <limits>

#include "tapegrad/autograd/geometry.h"
#include "tapegrad/autograd/op.h"
#include "tapegrad/kernels/pool2d.h"

namespace tg {
namespace {

using kernels::PoolAxis;

struct Windows {
  PoolAxis h, w;
  bool count_padding = true;
};

// A pooling is linear once the maxima are found; these are its three linear maps. Each one's
// derivative is its adjoint, so any order of derivative is made of them.
Tensor scatter(const Tensor& dy, const Tensor& position, const Windows& windows);
Tensor average(const Op& op, const Tensor& x, const Windows& windows);

// The layout of x for a tensor of another shape: channels next to each other or not.
Tensor empty_image(const Shape& shape, const Tensor& like, DType dtype) {
  const bool channels_last = like.is_channels_last() && !like.is_contiguous();
  return empty_strided(shape,
                       channels_last ? channels_last_strides(shape) : contiguous_strides(shape),
                       {dtype, like.device()});
}

Shape input_shape(const Tensor& y, const Windows& windows) {
  return {y.size(0), y.size(1), windows.h.inputs, windows.w.inputs};
}
Shape result_shape(const Tensor& x, const Windows& windows) {
  return {x.size(0), x.size(1), windows.h.results, windows.w.results};
}

// y = x at the positions    dx = scatter(dy)
Tensor gather(const Tensor& x, const Tensor& position, const Windows& windows) {
  Op op("max_pool2d_gather");
  Tensor y = empty_image(result_shape(x, windows), x, x.dtype());
  on(x.device(), [&](auto device) {
    kernels::max_pool2d_gather(device, x.read(), position.read(), y.write(), windows.h, windows.w);
  });
  return op.record(y, {x},
                   [position = Saved::plain(position), windows](const Tensor& dy, Needs) -> Grads {
                     return {scatter(dy, position.get(), windows)};
                   });
}

// dx = dy at the positions, 0 elsewhere    d(dy) = gather(ddx)
Tensor scatter(const Tensor& dy, const Tensor& position, const Windows& windows) {
  Op op("max_pool2d_backward");
  Tensor dx = empty_image(input_shape(dy, windows), position, dy.dtype());
  on(dy.device(), [&](auto device) {
    kernels::max_pool2d_scatter(device, dy.read(), position.read(), dx.write(), windows.h,
                                windows.w);
  });
  return op.record(dx, {dy},
                   [position = Saved::plain(position), windows](const Tensor& ddx, Needs) -> Grads {
                     return {gather(ddx, position.get(), windows)};
                   });
}

// dx = each dy / size over its window    d(dy) = average(ddx)
Tensor spread(const Tensor& dy, const Windows& windows) {
  Op op("avg_pool2d_backward");
  Tensor dx = empty_image(input_shape(dy, windows), dy, dy.dtype());
  on(dy.device(), [&](auto device) {
    kernels::avg_pool2d_backward(device, dy.read(), dx.write(), windows.h, windows.w,
                                 windows.count_padding);
  });
  return op.record(dx, {dy}, [windows](const Tensor& ddx, Needs) -> Grads {
    Op inner("avg_pool2d");
    return {average(inner, ddx, windows)};
  });
}

// y = sum of a window / its size    dx = spread(dy)
Tensor average(const Op& op, const Tensor& x, const Windows& windows) {
  Tensor y = empty_image(result_shape(x, windows), x, x.dtype());
  on(x.device(), [&](auto device) {
    kernels::avg_pool2d(device, x.read(), y.write(), windows.h, windows.w, windows.count_padding);
  });
  return op.record(y, {x},
                   [windows](const Tensor& dy, Needs) -> Grads { return {spread(dy, windows)}; });
}

void check_image(const Tensor& x) {
  check<DTypeError>(x.is_floating(), "works on floats, got", x, "- cast it with .to(f32)");
  check<ShapeError>(x.dim() == 4, "takes images [N,C,H,W], got", x.shape(),
                    x.dim() == 3 ? "- unsqueeze(x, 0) makes a batch of one" : "");
  check_sides(x);
}

constexpr int64_t kMostKernel = std::numeric_limits<int32_t>::max();

PoolAxis pool_axis(const Tensor& x, int dim, int64_t kernel, int64_t stride, int64_t padding,
                   bool ceil_mode) {
  PoolAxis axis;
  axis.inputs = x.size(dim);
  axis.kernel = kernel;
  // A stride over all of the image and its padding means the same as any longer one.
  axis.stride = std::min(stride, std::max<int64_t>(axis.inputs + padding, 1));
  stride = axis.stride;
  axis.padding = padding;
  const int64_t room = axis.inputs + 2 * padding - kernel;
  if (room < 0) return axis;  // results stays 0
  axis.results = (ceil_mode ? (room + stride - 1) / stride : room / stride) + 1;
  // A window that begins in the padding behind the image would hold nothing.
  if (ceil_mode && (axis.results - 1) * stride >= axis.inputs + padding) --axis.results;
  return axis;
}

Windows pool_windows(const Tensor& x, Size2 kernel, const Pool2dOptions& options) {
  check_image(x);
  const Size2 stride{options.stride.h ? options.stride.h : kernel.h,
                     options.stride.w ? options.stride.w : kernel.w};
  const Size2 padding = options.padding;
  check<ValueError>(kernel.h > 0 && kernel.w > 0, "kernel must be positive, got", kernel);
  check<ValueError>(kernel.h <= kMostKernel && kernel.w <= kMostKernel, "kernel must be at most",
                    kMostKernel, ", got", kernel);
  check<ValueError>(stride.h > 0 && stride.w > 0, "stride must be positive, got", stride);
  check<ValueError>(
      padding.h >= 0 && padding.w >= 0 && padding.h <= kernel.h / 2 && padding.w <= kernel.w / 2,
      "padding", padding, "must be between 0 and half of the kernel", kernel);
  Windows windows{pool_axis(x, 2, kernel.h, stride.h, padding.h, options.ceil_mode),
                  pool_axis(x, 3, kernel.w, stride.w, padding.w, options.ceil_mode),
                  options.count_include_pad};
  check<ShapeError>(windows.h.results > 0 && windows.w.results > 0 && windows.h.inputs > 0 &&
                        windows.w.inputs > 0,
                    "kernel", kernel, "does not fit the image of", x.shape(), "with padding",
                    padding);
  return windows;
}

}  // namespace

// dx = dy at the position of each window's maximum
Tensor max_pool2d(const Tensor& input, Size2 kernel, const Pool2dOptions& options) {
  Op op("max_pool2d");
  const Tensor x = op.in(input);
  const Windows windows = pool_windows(x, kernel, options);
  check<ValueError>(kernel.h <= kMostKernel / kernel.w, "kernel", kernel,
                    "has more positions than 32 bits can tell");
  Tensor y = empty_image(result_shape(x, windows), x, x.dtype());
  Tensor position = empty_image(y.shape(), x, kernel.h * kernel.w <= 256 ? u8 : i32);
  on(x.device(), [&](auto device) {
    kernels::max_pool2d(device, x.read(), y.write(), position.write(), windows.h, windows.w);
  });
  return op.record(y, {x},
                   [position = Saved::plain(position), windows](const Tensor& dy, Needs) -> Grads {
                     return {scatter(dy, position.get(), windows)};
                   });
}

Tensor avg_pool2d(const Tensor& input, Size2 kernel, const Pool2dOptions& options) {
  Op op("avg_pool2d");
  const Tensor x = op.in(input);
  return average(op, x, pool_windows(x, kernel, options));
}

Tensor adaptive_avg_pool2d(const Tensor& input, Size2 output) {
  Op op("adaptive_avg_pool2d");
  const Tensor x = op.in(input);
  check_image(x);
  check<ValueError>(output.h > 0 && output.w > 0, "output size must be positive, got", output);
  check<ShapeError>(x.size(2) > 0 && x.size(3) > 0, "the image is empty:", x.shape());
  Windows windows;
  windows.h.inputs = x.size(2);
  windows.h.results = output.h;
  windows.w.inputs = x.size(3);
  windows.w.results = output.w;
  windows.h.adaptive = windows.w.adaptive = true;
  return average(op, x, windows);
}

}  // namespace tg
