#include "tapegrad/kernels/conv2d.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include "tapegrad/kernels/cpu/conv2d/correlate.h"
#include "tapegrad/kernels/cpu/conv2d/image.h"
#include "tapegrad/kernels/cpu/conv2d/weight_gradient.h"
#include "tapegrad/kernels/cpu/lab/frame.h"
#include "tapegrad/kernels/cpu/scratch.h"

namespace tg::kernels {
namespace {

using conv::Axis;

std::atomic<bool> fast{true};

// The type that a dtype is computed in.
template <class F>
void visit_computed(DType t, F&& fn) {
  if (t == DType::f64) {
    fn.template operator()<double>();
  } else if (t == DType::f32 || t == DType::f16 || t == DType::bf16) {
    fn.template operator()<float>();
  } else {
    fail<DTypeError>("works on floats, got", t);
  }
}

template <class T>
void forward(View x, View weight, View bias, MutView y, const Conv2dGeometry& g) {
  std::optional<Scratch<T>> converted_bias;
  conv::Correlation<T> c;
  c.h = conv::forward_axis(x.size(2), y.size(2), weight.size(2), g.stride_h, g.padding_h,
                           g.dilation_h);
  c.w = conv::forward_axis(x.size(3), y.size(3), weight.size(3), g.stride_w, g.padding_w,
                           g.dilation_w);
  c.source = x;
  c.target = y;
  c.groups = g.groups;
  c.source_channels = x.size(1) / g.groups;
  c.target_channels = y.size(1) / g.groups;
  c.kernel = weight;
  c.kernel_group = c.target_channels * weight.stride(0);
  c.kernel_target = weight.stride(0);
  c.kernel_source = weight.stride(1);
  c.kernel_h = weight.stride(2);
  c.kernel_w = weight.stride(3);
  if (bias.data) {
    converted_bias.emplace(y.size(1));
    conv::load_values(bias.data, bias.dtype, 0, bias.stride(0), y.size(1), converted_bias->data());
    c.bias = converted_bias->data();
  }
  conv::correlate(c);
}

template <class T>
void backward_input(View dy, View weight, MutView dx, const Conv2dGeometry& g) {
  conv::Correlation<T> c;
  c.source = dy;
  c.target = dx;
  c.groups = g.groups;
  c.source_channels = dy.size(1) / g.groups;
  c.target_channels = dx.size(1) / g.groups;
  c.kernel = weight;
  c.kernel_group = c.source_channels * weight.stride(0);
  c.kernel_target = weight.stride(1);
  c.kernel_source = weight.stride(0);
  c.kernel_h = weight.stride(2);
  c.kernel_w = weight.stride(3);
  // No input is in a phase behind the last one.
  const int64_t phases_h = std::min(g.stride_h, dx.size(2));
  const int64_t phases_w = std::min(g.stride_w, dx.size(3));
  for (int64_t phase_h = 0; phase_h < phases_h; ++phase_h) {
    c.h = conv::backward_axis(dx.size(2), dy.size(2), weight.size(2), g.stride_h, g.padding_h,
                              g.dilation_h, phase_h);
    for (int64_t phase_w = 0; phase_w < phases_w; ++phase_w) {
      c.w = conv::backward_axis(dx.size(3), dy.size(3), weight.size(3), g.stride_w, g.padding_w,
                                g.dilation_w, phase_w);
      conv::correlate(c);
    }
  }
}

}  // namespace

bool fast_conv2d() { return fast.load(std::memory_order_relaxed); }
void set_fast_conv2d(bool on) { fast.store(on, std::memory_order_relaxed); }

void conv2d(Cpu, View x, View weight, View bias, MutView y, const Conv2dGeometry& geometry) {
  const auto rung = lab::chosen_rung<lab::Images>();
  if (rung && x.dtype != DType::f64 && x.numel > 0 && weight.numel > 0 && y.numel > 0) [[unlikely]]
    return lab::run(rung, x, weight, bias, y, geometry);
  visit_computed(x.dtype, [&]<class T>() { forward<T>(x, weight, bias, y, geometry); });
}

void conv2d_backward_input(Cpu, View dy, View weight, MutView dx, const Conv2dGeometry& geometry) {
  visit_computed(dy.dtype, [&]<class T>() { backward_input<T>(dy, weight, dx, geometry); });
}

void conv2d_backward_weight(Cpu, View x, View dy, MutView dweight, const Conv2dGeometry& g) {
  const Axis h = conv::forward_axis(x.size(2), dy.size(2), dweight.size(2), g.stride_h, g.padding_h,
                                    g.dilation_h);
  const Axis w = conv::forward_axis(x.size(3), dy.size(3), dweight.size(3), g.stride_w, g.padding_w,
                                    g.dilation_w);
  visit_computed(dy.dtype,
                 [&]<class T>() { conv::weight_gradient<T>(x, dy, dweight, h, w, g.groups); });
}

}  // namespace tg::kernels
