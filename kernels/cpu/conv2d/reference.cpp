#include "tapegrad/kernels/cpu/conv2d/reference.h"

#include <vector>

namespace tg::kernels::conv {
namespace {

int64_t offset(const Shape& strides, int64_t a, int64_t b, int64_t c, int64_t d) {
  return a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3];
}

// Every product of a convolution: visit(n, output channel, oy, ox, input channel, input channel
// within its group, iy, ix, ky, kx), padding left out.
template <class F>
void for_each_product(const Shape& x, const Shape& weight, const Shape& y, const Conv2dGeometry& g,
                      F&& visit) {
  const int64_t outputs_of_group = y[1] / g.groups;
  for (int64_t n = 0; n < y[0]; ++n)
    for (int64_t co = 0; co < y[1]; ++co)
      for (int64_t oy = 0; oy < y[2]; ++oy)
        for (int64_t ox = 0; ox < y[3]; ++ox)
          for (int64_t c = 0; c < weight[1]; ++c)
            for (int64_t ky = 0; ky < weight[2]; ++ky)
              for (int64_t kx = 0; kx < weight[3]; ++kx) {
                const int64_t iy = oy * g.stride_h - g.padding_h + ky * g.dilation_h;
                const int64_t ix = ox * g.stride_w - g.padding_w + kx * g.dilation_w;
                if (iy < 0 || iy >= x[2] || ix < 0 || ix >= x[3]) continue;
                visit(n, co, oy, ox, co / outputs_of_group * weight[1] + c, c, iy, ix, ky, kx);
              }
}

// Sums in f64, then rounds each element of the result once. add(sums) adds to sums[row-major
// index].
template <class T, class F>
void accumulate(MutView result, F&& add) {
  const Shape& shape = result.shape();
  const Shape dense = contiguous_strides(shape);
  std::vector<double> sums(static_cast<size_t>(result.numel), 0.0);
  add([&](int64_t a, int64_t b, int64_t c, int64_t d) -> double& {
    return sums[static_cast<size_t>(offset(dense, a, b, c, d))];
  });
  for (int64_t a = 0; a < shape[0]; ++a)
    for (int64_t b = 0; b < shape[1]; ++b)
      for (int64_t c = 0; c < shape[2]; ++c)
        for (int64_t d = 0; d < shape[3]; ++d)
          result.as<T>()[offset(result.strides(), a, b, c, d)] =
              static_cast<T>(sums[static_cast<size_t>(offset(dense, a, b, c, d))]);
}

template <class T>
auto elements(View v) {
  return [v](int64_t a, int64_t b, int64_t c, int64_t d) -> double {
    return v.as<T>()[offset(v.strides(), a, b, c, d)];
  };
}

}  // namespace

void reference(View x, View weight, View bias, MutView y, const Conv2dGeometry& geometry) {
  visit_float(x.dtype, [&]<class T>() {
    const auto xs = elements<T>(x), ws = elements<T>(weight);
    accumulate<T>(y, [&](auto&& sum) {
      for_each_product(x.shape(), weight.shape(), y.shape(), geometry,
                       [&](int64_t n, int64_t co, int64_t oy, int64_t ox, int64_t ci, int64_t c,
                           int64_t iy, int64_t ix, int64_t ky, int64_t kx) {
                         sum(n, co, oy, ox) += xs(n, ci, iy, ix) * ws(co, c, ky, kx);
                       });
      if (!bias.data) return;
      for (int64_t n = 0; n < y.size(0); ++n)
        for (int64_t co = 0; co < y.size(1); ++co)
          for (int64_t oy = 0; oy < y.size(2); ++oy)
            for (int64_t ox = 0; ox < y.size(3); ++ox)
              sum(n, co, oy, ox) += bias.as<T>()[co * bias.stride(0)];
    });
  });
}

void reference_backward_input(View dy, View weight, MutView dx, const Conv2dGeometry& geometry) {
  visit_float(dy.dtype, [&]<class T>() {
    const auto dys = elements<T>(dy), ws = elements<T>(weight);
    accumulate<T>(dx, [&](auto&& sum) {
      for_each_product(dx.shape(), weight.shape(), dy.shape(), geometry,
                       [&](int64_t n, int64_t co, int64_t oy, int64_t ox, int64_t ci, int64_t c,
                           int64_t iy, int64_t ix, int64_t ky, int64_t kx) {
                         sum(n, ci, iy, ix) += dys(n, co, oy, ox) * ws(co, c, ky, kx);
                       });
    });
  });
}

void reference_backward_weight(View x, View dy, MutView dweight, const Conv2dGeometry& geometry) {
  visit_float(dy.dtype, [&]<class T>() {
    const auto xs = elements<T>(x), dys = elements<T>(dy);
    accumulate<T>(dweight, [&](auto&& sum) {
      for_each_product(x.shape(), dweight.shape(), dy.shape(), geometry,
                       [&](int64_t n, int64_t co, int64_t oy, int64_t ox, int64_t ci, int64_t c,
                           int64_t iy, int64_t ix, int64_t ky, int64_t kx) {
                         sum(co, c, ky, kx) += xs(n, ci, iy, ix) * dys(n, co, oy, ox);
                       });
    });
  });
}

}  // namespace tg::kernels::conv
