#include <algorithm>
#include <vector>

#include "tapegrad/core/allocator.h"
#include "tapegrad/core/parallel.h"
#include "tapegrad/kernels/conv2d.h"
#include "tapegrad/kernels/cpu/conv2d/image.h"
#include "tapegrad/kernels/cpu/conv2d/winograd.h"
#include "tapegrad/kernels/cpu/gemm/micro_kernel.h"
#include "tapegrad/kernels/cpu/scratch.h"

namespace tg::kernels::conv {
namespace {

using gemm::Tile;
constexpr int64_t kRows = gemm::kTileRows<float>, kColumns = gemm::kTileColumns<float>;
// Transformed sources and gradients of a part of the tiles: they stay in the third-level cache.
constexpr int64_t kPartBytes = 5 << 19;
// Source channels of one piece of work: its 36 products stay in the second-level cache.
constexpr int64_t kSources = 48;
constexpr int64_t kTaps = kKernel * kKernel;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The gradient towards a 3 x 3 kernel is a convolution of the sources with dy, whose 4 x 4 tiles
// play the kernel: F(3x3, 4x4) over the same points. The tiles are worked off part by part, each
// adding to dweight in turn; the parts depend on the shape alone.
//
//   v [36][tile][ci]          sources of a part
//   d [36][panel][tile][16]   dy of a part, in panels of 16 output channels
//   s [36][ci][16] = v^T d    for a piece of ci and one panel, then 36 -> 9 taps
//   sum [panel][ci][tap][16]  over the parts
class WinogradWeight {
 public:
  WinogradWeight(View x, View dy, MutView dweight, const Axis& h, const Axis& w)
      : x_(x), dy_(dy), dweight_(dweight), h_(h), w_(w), tiles_(x.size(0), h.results, w.results) {
    co_ = dweight.size(0);
    ci_ = dweight.size(1);
    panels_ = divide_up(co_, kColumns);
    pieces_ = divide_up(ci_, kSources);
    const int64_t tile_bytes = kProducts * int64_t{sizeof(float)} * (ci_ + panels_ * kColumns);
    part_ = std::min(tiles_.count, std::clamp<int64_t>(kPartBytes / tile_bytes, 64, 256));
    source_step_ = part_ * ci_ + 16;
    gradient_step_ = part_ * panels_ * kColumns + 16;
  }

  void run() {
    Workspace v(static_cast<size_t>(kProducts * source_step_) * sizeof(float));
    Workspace d(static_cast<size_t>(kProducts * gradient_step_) * sizeof(float));
    Workspace sum(static_cast<size_t>(panels_ * ci_ * kTaps * kColumns) * sizeof(float));
    for (int64_t first = 0; first < tiles_.count; first += part_) {
      const int64_t count = std::min(part_, tiles_.count - first);
      parallel_for(count, 4, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
          source_points(x_, tiles_.image(first + t), tiles_.row(first + t) + h_.first,
                        tiles_.column(first + t) + w_.first, ci_, v.as<float>() + t * ci_,
                        source_step_);
          gradient_points(first + t, d.as<float>() + t * kColumns);
        }
      });
      parallel_for(pieces_ * panels_, 1, [&](int64_t begin, int64_t end) {
        Scratch<float> s(kProducts * kProductStep);
        for (int64_t i = begin; i < end; ++i) {
          multiply(v.as<float>(), d.as<float>(), count, i % pieces_, i / pieces_, s.data());
          add_taps(s.data(), i % pieces_, i / pieces_, first == 0, sum.as<float>());
        }
      });
    }
    write(sum.as<float>());
  }

 private:
  static constexpr int64_t kProductStep = kSources * kColumns + 16;

  int64_t first_source(int64_t piece) const { return ci_ * piece / pieces_; }

  void gradient_points(int64_t tile, float* to) const {
    const int64_t image = tiles_.image(tile), row = tiles_.row(tile), column = tiles_.column(tile);
    for (int64_t c = 0; c < co_; c += Lanes::kWidth) {
      float* at = to + c / kColumns * part_ * kColumns + c % kColumns;
      transform_both<4, 6>(
          result_to_points,
          [&](int r, int k) {
            const bool inside = row + r < dy_.rows() && column + k < dy_.columns();
            return inside ? Lanes::load(dy_.at(image, row + r, column + k) + c) : Lanes(0);
          },
          [&](int r, int k, Lanes value) { value.store(at + (r * kPoints + k) * gradient_step_); });
    }
  }

  void multiply(const float* v, const float* d, int64_t count, int64_t piece, int64_t panel,
                float* s) const {
    const int64_t begin = first_source(piece), sources = first_source(piece + 1) - begin;
    const int64_t tiles = divide_up(sources, kRows);
    Tile<float> tile;
    tile.layout = gemm::ALayout::transposed;
    tile.columns = static_cast<int>(std::min(kColumns, co_ - panel * kColumns));
    tile.depth = tile.last_depth = count;
    tile.a_row = 1;
    tile.a_depth = ci_;
    tile.b_depth = kColumns;
    tile.c_row = kColumns;
    for (int64_t k = 0; k < kProducts; ++k) {
      tile.b = d + k * gradient_step_ + panel * part_ * kColumns;
      for (int64_t t = 0; t < tiles; ++t) {
        const int64_t row = sources * t / tiles;
        tile.rows = static_cast<int>(sources * (t + 1) / tiles - row);
        tile.a = v + k * source_step_ + begin + row;
        tile.c = s + k * kProductStep + row * kColumns;
        gemm::run_tile(tile);
      }
    }
  }

  void add_taps(const float* s, int64_t piece, int64_t panel, bool first, float* sum) const {
    const int64_t begin = first_source(piece), end = first_source(piece + 1);
    const int64_t width = std::min(kColumns, co_ - panel * kColumns);
    for (int64_t c = begin; c < end; ++c) {
      for (int64_t lane = 0; lane < width; lane += Lanes::kWidth) {
        const float* from = s + (c - begin) * kColumns + lane;
        float* to = sum + (panel * ci_ + c) * kTaps * kColumns + lane;
        transform_both<6, 3>(
            points_to_kernel,
            [&](int r, int k) { return Lanes::load(from + (r * kPoints + k) * kProductStep); },
            [&](int r, int k, Lanes value) {
              float* at = to + (r * kKernel + k) * kColumns;
              (first ? value : Lanes::load(at) + value).store(at);
            });
      }
    }
  }

  // [panel][ci][tap][16] -> [co][ci][tap]
  void write(const float* sum) const {
    parallel_for(panels_, 1, [&](int64_t begin, int64_t end) {
      Scratch<float> taps(ci_ * kTaps);
      for (int64_t co = begin * kColumns; co < std::min(end * kColumns, co_); ++co) {
        const float* from = sum + co / kColumns * ci_ * kTaps * kColumns + co % kColumns;
        // As [tap][ci]: what store() takes, with co as the image.
        for (int64_t c = 0; c < ci_; ++c) {
          for (int64_t tap = 0; tap < kTaps; ++tap, from += kColumns) taps[tap * ci_ + c] = *from;
        }
        store(taps.data(), ci_, dweight_, {co, 0, ci_, 0, 1, kKernel, 0, 1, kKernel});
      }
    });
  }

  const PixelRows x_, dy_;
  const MutView dweight_;
  const Axis h_, w_;
  const Tiles tiles_;
  int64_t co_, ci_, panels_, pieces_, part_;
  int64_t source_step_, gradient_step_;  // between two of the 36
};

}  // namespace

bool suits_winograd_weight(View x, View dy, MutView dweight, const Axis& h, const Axis& w,
                           int64_t groups) {
  Correlation<float> c;
  c.h = h;
  c.w = w;
  c.source = x;
  c.groups = groups;
  c.source_channels = dweight.size(1);
  c.target_channels = dweight.size(0);
  return dy.numel > 0 && suits_winograd(c);
}

void winograd_weight(View x, View dy, MutView dweight, const Axis& h, const Axis& w) {
  WinogradWeight(x, dy, dweight, h, w).run();
}

}  // namespace tg::kernels::conv
