// The formula as it stands: four loops over the results, three over the window of each. Every
// multiplication is preceded by the question whether it lies in the padding, and the weights are
// read jumping from one line of memory to the next.
#include "tapegrad/kernels/cpu/lab/rungs.h"

namespace tg::kernels::lab {

void seven_loops(const Images& p) {
  const Conv2dGeometry& g = p.geometry;
  const float* const x = p.x;
  for (int64_t n = 0; n < p.images; ++n)
    for (int64_t oy = 0; oy < p.out_height; ++oy)
      for (int64_t ox = 0; ox < p.out_width; ++ox)
        for (int64_t co = 0; co < p.out_channels; ++co) {
          float sum = 0;
          for (int64_t ky = 0; ky < p.kernel_h; ++ky)
            for (int64_t kx = 0; kx < p.kernel_w; ++kx)
              for (int64_t c = 0; c < p.channels; ++c) {
                const int64_t iy = oy * g.stride_h - g.padding_h + ky * g.dilation_h;
                const int64_t ix = ox * g.stride_w - g.padding_w + kx * g.dilation_w;
                if (iy < 0 || iy >= p.height || ix < 0 || ix >= p.width) continue;
                sum += x[((n * p.height + iy) * p.width + ix) * p.channels + c] *
                       p.weight[((ky * p.kernel_w + kx) * p.channels + c) * p.out_channels + co];
              }
          p.y[((n * p.out_height + oy) * p.out_width + ox) * p.out_channels + co] =
              sum + (p.bias ? p.bias[co] : 0);
        }
}

}  // namespace tg::kernels::lab
