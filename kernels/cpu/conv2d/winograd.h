// Winograd's F(4x4, 3x3): a convolution of 3 x 3 with step 1 in a quarter of the products. A tile
// of 4 x 4 results is a polynomial product; evaluated at 6 x 6 points it becomes 36 plain products,
// each summed over channels as a matrix product, and 16 results come back by interpolation.
//
//   result = A^T [ (G g G^T) * (B^T d B) ] A      d: 6 x 6 sources, g: 3 x 3 kernel
//
// The points are 0, +-3/4, +-3/2 and infinity: exact in binary, and with less rounding than the
// textbook's 0, +-1, +-2. Results are within 2 times the rounding error of a direct sum. Infinity
// or NaN in a source reaches all results of its tiles.
#pragma once
#include "tapegrad/kernels/cpu/conv2d/correlate.h"
#include "tapegrad/kernels/cpu/packet.h"

namespace tg::kernels::conv {

// True if `winograd` may take it over and is faster.
bool suits_winograd(const Correlation<float>& correlation);
void winograd(const Correlation<float>& correlation);
// The same for the gradient towards the weight.
bool suits_winograd_weight(View x, View dy, MutView dweight, const Axis& h, const Axis& w,
                           int64_t groups);
void winograd_weight(View x, View dy, MutView dweight, const Axis& h, const Axis& w);

// ---- transforms along one dimension; in two dimensions they run along columns, then rows ----

using Lanes = Packet<float>;
inline constexpr int kTile = 4, kKernel = 3, kPoints = 6, kProducts = kPoints * kPoints;
inline constexpr float kA = 0.75f, kB = 1.5f, kA2 = kA * kA, kB2 = kB * kB;

// B^T: 6 sources -> 6 points.
inline void source_to_points(const Lanes (&d)[6], Lanes (&p)[6]) {
  const Lanes minus_sum(-(kA2 + kB2)), product(kA2 * kB2);
  p[0] = fma(product, d[0], fma(minus_sum, d[2], d[4]));
  Lanes even = fma(Lanes(-kB2), d[2], d[4]), odd = fma(Lanes(-kA * kB2), d[1], Lanes(kA) * d[3]);
  p[1] = even + odd;
  p[2] = even - odd;
  even = fma(Lanes(-kA2), d[2], d[4]);
  odd = fma(Lanes(-kA2 * kB), d[1], Lanes(kB) * d[3]);
  p[3] = even + odd;
  p[4] = even - odd;
  p[5] = fma(product, d[1], fma(minus_sum, d[3], d[5]));
}

// The values at +-a and +-b of a polynomial with these even and odd coefficients, divided as G
// asks.
inline constexpr float kAtZero = 1 / (kA2 * kB2), kAtA = 1 / (2 * kA2 * (kA2 - kB2)),
                       kAtB = 1 / (2 * kB2 * (kB2 - kA2));
// G: 3 kernel entries -> 6 points.
inline void kernel_to_points(const Lanes (&g)[3], Lanes (&p)[6]) {
  p[0] = Lanes(kAtZero) * g[0];
  Lanes even = Lanes(kAtA) * fma(Lanes(kA2), g[2], g[0]), odd = Lanes(kAtA * kA) * g[1];
  p[1] = even + odd;
  p[2] = even - odd;
  even = Lanes(kAtB) * fma(Lanes(kB2), g[2], g[0]);
  odd = Lanes(kAtB * kB) * g[1];
  p[3] = even + odd;
  p[4] = even - odd;
  p[5] = g[2];
}
// The same for a "kernel" of 4 entries: the gradient of a tile of results.
inline void result_to_points(const Lanes (&g)[4], Lanes (&p)[6]) {
  p[0] = Lanes(kAtZero) * g[0];
  Lanes even = Lanes(kAtA) * fma(Lanes(kA2), g[2], g[0]);
  Lanes odd = Lanes(kAtA) * fma(Lanes(kA2 * kA), g[3], Lanes(kA) * g[1]);
  p[1] = even + odd;
  p[2] = even - odd;
  even = Lanes(kAtB) * fma(Lanes(kB2), g[2], g[0]);
  odd = Lanes(kAtB) * fma(Lanes(kB2 * kB), g[3], Lanes(kB) * g[1]);
  p[3] = even + odd;
  p[4] = even - odd;
  p[5] = g[3];
}

// A^T: 6 points -> 4 results.
inline void points_to_result(const Lanes (&p)[6], Lanes (&y)[4]) {
  const Lanes sum_a = p[1] + p[2], minus_a = p[1] - p[2], sum_b = p[3] + p[4],
              minus_b = p[3] - p[4];
  y[0] = p[0] + (sum_a + sum_b);
  y[1] = fma(Lanes(kA), minus_a, Lanes(kB) * minus_b);
  y[2] = fma(Lanes(kA2), sum_a, Lanes(kB2) * sum_b);
  y[3] = fma(Lanes(kA2 * kA), minus_a, fma(Lanes(kB2 * kB), minus_b, p[5]));
}
// 6 points -> 3 kernel entries.
inline void points_to_kernel(const Lanes (&p)[6], Lanes (&g)[3]) {
  const Lanes sum_a = p[1] + p[2], minus_a = p[1] - p[2], sum_b = p[3] + p[4],
              minus_b = p[3] - p[4];
  g[0] = p[0] + (sum_a + sum_b);
  g[1] = fma(Lanes(kA), minus_a, Lanes(kB) * minus_b);
  g[2] = fma(Lanes(kA2), sum_a, fma(Lanes(kB2), sum_b, p[5]));
}

// transform along both dimensions: load(row, column) gives the kIn x kIn values, store(row, column,
// value) takes the kOut x kOut ones.
template <int kIn, int kOut, class Load, class Store>
inline void transform_both(void (&transform)(const Lanes (&)[kIn], Lanes (&)[kOut]), Load&& load,
                           Store&& store) {
  Lanes half[kOut][kIn];
#pragma GCC unroll 6
  for (int column = 0; column < kIn; ++column) {
    Lanes in[kIn], out[kOut];
#pragma GCC unroll 6
    for (int row = 0; row < kIn; ++row) in[row] = load(row, column);
    transform(in, out);
#pragma GCC unroll 6
    for (int row = 0; row < kOut; ++row) half[row][column] = out[row];
  }
#pragma GCC unroll 6
  for (int row = 0; row < kOut; ++row) {
    Lanes out[kOut];
    transform(half[row], out);
#pragma GCC unroll 6
    for (int column = 0; column < kOut; ++column) store(row, column, out[column]);
  }
}

// ---- tiles ----

// Images of f32 with the channels of a pixel next to each other, cut into tiles of 4 x 4 results.
struct Tiles {
  int64_t down, across, count;
  Tiles(int64_t images, int64_t rows, int64_t columns)
      : down((rows + kTile - 1) / kTile),
        across((columns + kTile - 1) / kTile),
        count(images * down * across) {}
  int64_t image(int64_t tile) const { return tile / (down * across); }
  int64_t row(int64_t tile) const { return tile / across % down * kTile; }
  int64_t column(int64_t tile) const { return tile % across * kTile; }
};

// A [N,C,H,W] tensor in that form: itself, or a copy.
class PixelRows {
 public:
  explicit PixelRows(View x);
  ~PixelRows();
  PixelRows(const PixelRows&) = delete;
  const float* at(int64_t image, int64_t row, int64_t column) const {
    return data_ + image * image_ + row * row_ + column * column_;
  }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }

 private:
  void* copy_ = nullptr;
  size_t copy_bytes_ = 0;
  const float* data_;
  int64_t image_, row_, column_, rows_, columns_;
};

// The 36 points of the 6 x 6 sources from (row, column) on, `channels` of them (a multiple of
// Lanes::kWidth); point k goes to points + k * step. Sources outside of the image are zeros.
void source_points(const PixelRows& x, int64_t image, int64_t row, int64_t column, int64_t channels,
                   float* points, int64_t step);

}  // namespace tg::kernels::conv
