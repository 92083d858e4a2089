// The window of each result is written down as one row of a matrix ("image to columns"). The
// convolution is then the product of that matrix and the weights, and every trick of the matrix
// product is there for nothing.
//
//   windows [pixels][taps * channels]  x  weights [taps * channels][out_channels]  =  y
//   [pixels][..]
//
// What it gains: the arithmetic runs at the speed of the product. What it costs: with a 3x3 window
// every value of the image is written nine times and read back nine times.
#include <algorithm>

#include "tapegrad/kernels/cpu/gemm/gemm.h"
#include "tapegrad/kernels/cpu/lab/rungs.h"
#include "tapegrad/kernels/cpu/scratch.h"

namespace tg::kernels::lab {
namespace {

// The window of result (oy, ox) of one image, zeros where it sticks out.
float* write_window(const Images& p, const float* image, int64_t oy, int64_t ox, float* to) {
  const Conv2dGeometry& g = p.geometry;
  for (int64_t ky = 0; ky < p.kernel_h; ++ky)
    for (int64_t kx = 0; kx < p.kernel_w; ++kx, to += p.channels) {
      const int64_t iy = oy * g.stride_h - g.padding_h + ky * g.dilation_h;
      const int64_t ix = ox * g.stride_w - g.padding_w + kx * g.dilation_w;
      if (iy < 0 || iy >= p.height || ix < 0 || ix >= p.width)
        std::fill_n(to, p.channels, 0.0f);
      else
        std::copy_n(image + (iy * p.width + ix) * p.channels, p.channels, to);
    }
  return to;
}

}  // namespace

void im2col(const Images& p) {
  const int64_t pixels = p.out_height * p.out_width, size = p.kernel_h * p.kernel_w * p.channels;
  Scratch<float> windows(pixels * size);
  for (int64_t n = 0; n < p.images; ++n) {
    float* to = windows.data();
    for (int64_t oy = 0; oy < p.out_height; ++oy)
      for (int64_t ox = 0; ox < p.out_width; ++ox)
        to = write_window(p, p.x + n * p.height * p.width * p.channels, oy, ox, to);
    gemm::Product<float> product;
    product.rows = pixels;
    product.columns = p.out_channels;
    product.depth = size;
    product.a = windows.data();
    product.a_row = size;
    product.b = p.weight;
    product.b_row = p.out_channels;
    product.c = p.y + n * pixels * p.out_channels;
    product.c_row = p.out_channels;
    product.addend = p.bias;
    gemm::multiply(product);
  }
}

}  // namespace tg::kernels::lab
