// The loop over result channels comes innermost: the results of one pixel grow together, by one row
// of weights after the other, and all of them use the same value of x.
//
// What it gains: weights and results are walked along, additions need not wait for each other, and
// the question for the border is asked once for each tap of the window. This is what the second
// rung of matmul did.
#include <algorithm>

#include "tapegrad/kernels/cpu/lab/rungs.h"

namespace tg::kernels::lab {
namespace {

// y[co] += the sum over channels of x[c] weight[c][co].
void add_tap(const float* x, const float* weight, int64_t channels, int64_t count, float* y) {
  for (int64_t c = 0; c < channels; ++c, weight += count)
    for (int64_t co = 0; co < count; ++co) y[co] += x[c] * weight[co];
}

}  // namespace

void channel_rows(const Images& p) {
  const Conv2dGeometry& g = p.geometry;
  float* y = p.y;
  for (int64_t n = 0; n < p.images; ++n)
    for (int64_t oy = 0; oy < p.out_height; ++oy)
      for (int64_t ox = 0; ox < p.out_width; ++ox, y += p.out_channels) {
        std::fill_n(y, p.out_channels, 0.0f);
        for (int64_t ky = 0; ky < p.kernel_h; ++ky)
          for (int64_t kx = 0; kx < p.kernel_w; ++kx) {
            const int64_t iy = oy * g.stride_h - g.padding_h + ky * g.dilation_h;
            const int64_t ix = ox * g.stride_w - g.padding_w + kx * g.dilation_w;
            if (iy < 0 || iy >= p.height || ix < 0 || ix >= p.width) continue;
            add_tap(p.x + ((n * p.height + iy) * p.width + ix) * p.channels,
                    p.weight + (ky * p.kernel_w + kx) * p.channels * p.out_channels, p.channels,
                    p.out_channels, y);
          }
        for (int64_t co = 0; p.bias && co < p.out_channels; ++co) y[co] += p.bias[co];
      }
}

}  // namespace tg::kernels::lab
