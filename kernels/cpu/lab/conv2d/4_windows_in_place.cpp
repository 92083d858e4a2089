// With channels next to each other, a window is a few pieces of the image of `channels`
// neighbouring values, and the windows of neighbouring results are the same pieces, `stride *
// channels` values further on. The micro-kernel only asks how far the rows of its left matrix are
// apart; that these rows overlap is no trouble to it. So the product reads the image as if it were
// the matrix of windows.
//
// What it gains: that matrix is never written. Only a frame of zeros is put around each image,
// once.
#include <algorithm>

#include "tapegrad/kernels/cpu/gemm/micro_kernel.h"
#include "tapegrad/kernels/cpu/lab/rungs.h"
#include "tapegrad/kernels/cpu/scratch.h"

namespace tg::kernels::lab {
namespace {

constexpr int64_t kRows = gemm::kTileRows<float>, kColumns = gemm::kTileColumns<float>;

// [row of the weights][out_channels] as panels of [row][kColumns]: packed, as for any product.
void pack_weights(const Images& p, int64_t rows, float* to) {
  for (int64_t j = 0; j < p.out_channels; j += kColumns)
    for (int64_t k = 0; k < rows; ++k, to += kColumns)
      std::copy_n(p.weight + k * p.out_channels + j, std::min(kColumns, p.out_channels - j), to);
}

// One image with zeros around it.
void pad(const Images& p, const float* image, int64_t padded_width, float* to) {
  to += (p.geometry.padding_h * padded_width + p.geometry.padding_w) * p.channels;
  for (int64_t y = 0; y < p.height; ++y)
    std::copy_n(image + y * p.width * p.channels, p.width * p.channels,
                to + y * padded_width * p.channels);
}

// Some neighbouring results of one row, in the channels of one panel. `window` is where the window
// of the first one begins; t has its place in y, bias and panel.
void run_windows(const Images& p, const float* window, int64_t padded_width, gemm::Tile<float> t) {
  const Conv2dGeometry& g = p.geometry;
  t.a_row = g.stride_w * p.channels;
  t.b_depth = kColumns;
  t.segments = p.kernel_w;  // the pieces of the window in one row of the image
  t.depth = t.last_depth = p.channels;
  t.a_segment = g.dilation_w * p.channels;
  t.b_segment = p.channels * kColumns;
  for (int64_t ky = 0; ky < p.kernel_h; ++ky) {
    t.a = window + ky * g.dilation_h * padded_width * p.channels;
    gemm::run_tile(t);
    t.b += p.kernel_w * t.b_segment;
    t.addend = t.c;  // the next row of the window is added
    t.addend_row = t.c_row;
  }
}

}  // namespace

void windows_in_place(const Images& p) {
  const Conv2dGeometry& g = p.geometry;
  const int64_t width = p.width + 2 * g.padding_w, height = p.height + 2 * g.padding_h;
  const int64_t rows = p.kernel_h * p.kernel_w * p.channels;
  const int64_t panels = (p.out_channels + kColumns - 1) / kColumns;
  Scratch<float> weights(panels * rows * kColumns), padded(height * width * p.channels);
  pack_weights(p, rows, weights.data());
  std::fill_n(padded.data(), height * width * p.channels, 0.0f);  // the frame stays zero
  for (int64_t n = 0; n < p.images; ++n) {
    pad(p, p.x + n * p.height * p.width * p.channels, width, padded.data());
    for (int64_t j = 0; j < p.out_channels; j += kColumns)
      for (int64_t oy = 0; oy < p.out_height; ++oy)
        for (int64_t ox = 0; ox < p.out_width; ox += kRows) {
          gemm::Tile<float> t;
          t.rows = int(std::min(kRows, p.out_width - ox));
          t.columns = int(std::min(kColumns, p.out_channels - j));
          t.b = weights.data() + j * rows;
          t.c = p.y + ((n * p.out_height + oy) * p.out_width + ox) * p.out_channels + j;
          t.c_row = p.out_channels;
          t.addend = p.bias ? p.bias + j : nullptr;
          const int64_t first = oy * g.stride_h * width + ox * g.stride_w;
          run_windows(p, padded.data() + first * p.channels, width, t);
        }
  }
}

}  // namespace tg::kernels::lab
