#include "tapegrad/kernels/cpu/conv2d/winograd.h"

#include <algorithm>
#include <optional>

#include "tapegrad/core/allocator.h"
#include "tapegrad/core/parallel.h"
#include "tapegrad/kernels/conv2d.h"
#include "tapegrad/kernels/cpu/conv2d/image.h"
#include "tapegrad/kernels/cpu/conv2d/kernel_panel.h"
#include "tapegrad/kernels/cpu/gemm/micro_kernel.h"
#include "tapegrad/kernels/cpu/scratch.h"

namespace tg::kernels::conv {
namespace {

using gemm::Tile;
constexpr int64_t kRows = gemm::kTileRows<float>, kColumns = gemm::kTileColumns<float>;
// Transformed kernels up to this size are kept whole; larger ones are made a panel at a time.
constexpr int64_t kWholeKernelBytes = 3 << 20;
// Transformed sources and results of a chunk of tiles: most of a second-level cache.
constexpr int64_t kChunkBytes = 384 << 10;
// Transformed sources that are made at once where the kernel is made in panels.
constexpr int64_t kSourceBytes = 16 << 20;
// Source channels of a panel that are transformed at once: 36 x 64 x kColumns values stay in the
// second-level cache.
constexpr int64_t kDepth = 64;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// One convolution by tiles. Two orders of work:
//   chunks   the kernel is transformed once; a chunk of tiles is transformed, multiplied and
//            transformed back while it lies in the second-level cache
//   panels   (many channels, where the transformed kernel would be 4 times the weight and more than
//            any cache) all sources are transformed first; then 16 target channels at a time take
//            their kernel, products and results through the cache
class Winograd {
 public:
  explicit Winograd(const Correlation<float>& c)
      : c_(c),
        source_(c.source),
        tiles_(c.source.size(0), c.h.results, c.w.results),
        panels_(divide_up(c.target_channels, kColumns)) {
    if (!has_channel_rows<float>(c_.target)) {
      results_.emplace(static_cast<size_t>(c_.target.numel) * sizeof(float));
    }
  }

  void run() {
    const int64_t kernel_bytes =
        kProducts * c_.source_channels * panels_ * kColumns * int64_t{sizeof(float)};
    kernel_bytes <= kWholeKernelBytes ? run_chunks() : run_panels();
    for (int64_t n = 0; results_ && n < c_.target.size(0); ++n) {
      store(result_at(n, 0, 0), c_.target_channels, c_.target,
            {n, 0, c_.target_channels, 0, 1, c_.h.results, 0, 1, c_.w.results});
    }
  }

 private:
  void run_chunks() {
    const int64_t depth = c_.source_channels, panel_size = depth * kColumns;
    const int64_t kernel_step = panels_ * panel_size;  // between two of the 36
    Workspace kernel(static_cast<size_t>(kProducts * kernel_step) * sizeof(float));
    float* u = kernel.as<float>();
    parallel_for(panels_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        transform_kernel(p, 0, depth, u + p * panel_size, kernel_step);
      }
    });
    const int64_t bytes = kProducts * int64_t{sizeof(float)} * (depth + c_.target_channels);
    const int64_t chunk = std::clamp<int64_t>(kChunkBytes / bytes / kRows * kRows, 4 * kRows, 96);
    parallel_for(divide_up(tiles_.count, chunk), 1, [&](int64_t begin, int64_t end) {
      // A line more between two of the 36, so that they do not meet in one set of the cache.
      const int64_t source_step = chunk * depth + 16, result_step = chunk * c_.target_channels + 16;
      Scratch<float> v(kProducts * source_step), m(kProducts * result_step);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i * chunk, count = std::min(chunk, tiles_.count - first);
        for (int64_t t = 0; t < count; ++t) {
          transform_source(first + t, v.data() + t * depth, source_step);
        }
        for (int64_t k = 0; k < kProducts; ++k) {
          for (int64_t p = 0; p < panels_; ++p) {
            multiply(v.data() + k * source_step, depth, u + k * kernel_step + p * panel_size, depth,
                     count, p, m.data() + k * result_step + p * kColumns, c_.target_channels,
                     false);
          }
        }
        for (int64_t t = 0; t < count; ++t) {
          transform_result(m.data() + t * c_.target_channels, result_step, first + t, 0,
                           c_.target_channels);
        }
      }
    });
  }

  void run_panels() {
    const int64_t tile_bytes = kProducts * int64_t{sizeof(float)} * c_.source_channels;
    const int64_t most = std::max<int64_t>(kRows, kSourceBytes / tile_bytes / kRows * kRows);
    for (int64_t first = 0; first < tiles_.count; first += most) {
      run_panels(first, std::min(most, tiles_.count - first));
    }
  }

  void run_panels(int64_t first, int64_t count) {
    const int64_t depth = c_.source_channels, source_step = count * depth + 16;
    Workspace sources(static_cast<size_t>(kProducts * source_step) * sizeof(float));
    float* v = sources.as<float>();
    parallel_for(count, 4, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        transform_source(first + t, v + t * depth, source_step);
      }
    });
    parallel_for(panels_, 1, [&](int64_t begin, int64_t end) {
      const int64_t kernel_step = kDepth * kColumns + 16, result_step = count * kColumns + 16;
      Scratch<float> u(kProducts * kernel_step), m(kProducts * result_step);
      for (int64_t p = begin; p < end; ++p) {
        for (int64_t from = 0; from < depth; from += kDepth) {
          const int64_t size = std::min(kDepth, depth - from);
          transform_kernel(p, from, size, u.data(), kernel_step);
          for (int64_t k = 0; k < kProducts; ++k) {
            multiply(v + k * source_step + from, depth, u.data() + k * kernel_step, size, count, p,
                     m.data() + k * result_step, kColumns, from > 0);
          }
        }
        for (int64_t t = 0; t < count; ++t) {
          transform_result(m.data() + t * kColumns, result_step, first + t, p * kColumns,
                           panel_width(p));
        }
      }
    });
  }

  int64_t panel_width(int64_t p) const {
    return std::min(kColumns, c_.target_channels - p * kColumns);
  }

  // Source channels [from, from + count) of a panel: to[point][channel][kColumns].
  void transform_kernel(int64_t panel, int64_t from, int64_t count, float* to, int64_t step) const {
    Scratch<float> taps(count * kKernel * kKernel * kColumns);
    pack_kernel_lanes(c_, 0, panel, from, count, taps.data());
    for (int64_t s = 0; s < count; ++s) {
      for (int64_t lane = 0; lane < kColumns; lane += Lanes::kWidth) {
        const float* g = taps.data() + s * kKernel * kKernel * kColumns + lane;
        float* u = to + s * kColumns + lane;
        transform_both<3, 6>(
            kernel_to_points,
            [&](int row, int column) {
              return Lanes::load(g + (row * kKernel + column) * kColumns);
            },
            [&](int row, int column, Lanes value) {
              value.store(u + (row * kPoints + column) * step);
            });
      }
    }
  }

  void transform_source(int64_t tile, float* to, int64_t step) const {
    source_points(source_, tiles_.image(tile), tiles_.row(tile) + c_.h.first,
                  tiles_.column(tile) + c_.w.first, c_.source_channels, to, step);
  }

  // One of the 36 products, one panel: m[tile][..] = v[tile][depth] u[depth][kColumns].
  void multiply(const float* v, int64_t v_row, const float* u, int64_t depth, int64_t count,
                int64_t panel, float* m, int64_t m_row, bool add) const {
    Tile<float> tile;
    tile.columns = static_cast<int>(panel_width(panel));
    tile.depth = tile.last_depth = depth;
    tile.a_row = v_row;
    tile.b = u;
    tile.b_depth = kColumns;
    tile.c_row = tile.addend_row = m_row;
    const int64_t tiles = divide_up(count, kRows);
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t begin = count * t / tiles;
      tile.rows = static_cast<int>(count * (t + 1) / tiles - begin);
      tile.a = v + begin * v_row;
      tile.c = m + begin * m_row;
      tile.addend = add ? tile.c : nullptr;
      gemm::run_tile(tile);
    }
  }

  float* result_at(int64_t image, int64_t row, int64_t column) const {
    if (results_) {
      return results_->as<float>() +
             ((image * c_.h.results + row) * c_.w.results + column) * c_.target_channels;
    }
    const MutView& y = c_.target;
    return y.as<float>() + image * y.stride(0) + row * y.stride(2) + column * y.stride(3);
  }

  // Some target channels of a tile, from m[point][channel].
  void transform_result(const float* m, int64_t step, int64_t tile, int64_t channel,
                        int64_t channels) const {
    const int64_t row = tiles_.row(tile), column = tiles_.column(tile);
    const int64_t rows = c_.h.results - row, columns = c_.w.results - column;
    float* y = result_at(tiles_.image(tile), row, column) + channel;
    const int64_t y_row = result_at(0, 1, 0) - result_at(0, 0, 0);
    const int64_t y_column = result_at(0, 0, 1) - result_at(0, 0, 0);
    for (int64_t c = 0; c < channels; c += Lanes::kWidth) {
      const Lanes bias = c_.bias ? Lanes::load(c_.bias + channel + c) : Lanes(0);
      transform_both<6, 4>(
          points_to_result,
          [&](int r, int k) { return Lanes::load(m + (r * kPoints + k) * step + c); },
          [&](int r, int k, Lanes value) {
            if (r < rows && k < columns) (value + bias).store(y + r * y_row + k * y_column + c);
          });
    }
  }

  const Correlation<float> c_;
  const PixelRows source_;
  const Tiles tiles_;
  const int64_t panels_;
  std::optional<Workspace> results_;  // where the target has no channel rows of f32
};

}  // namespace

PixelRows::PixelRows(View x) : rows_(x.size(2)), columns_(x.size(3)) {
  if (has_channel_rows<float>(x)) {
    data_ = x.as<float>();
    image_ = x.stride(0);
    row_ = x.stride(2);
    column_ = x.stride(3);
    return;
  }
  copy_bytes_ = static_cast<size_t>(x.numel) * sizeof(float);
  copy_ = allocate({}, copy_bytes_, Purpose::workspace);
  data_ = static_cast<const float*>(copy_);
  column_ = x.size(1);
  row_ = columns_ * column_;
  image_ = rows_ * row_;
  parallel_for(x.size(0), 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      load(x, {n, 0, x.size(1), 0, rows_, 0, columns_}, static_cast<float*>(copy_) + n * image_);
    }
  });
}

PixelRows::~PixelRows() {
  if (copy_) deallocate({}, copy_, copy_bytes_, Purpose::workspace);
}

void source_points(const PixelRows& x, int64_t image, int64_t row, int64_t column, int64_t channels,
                   float* points, int64_t step) {
  // Where each of the 36 sources is; null in the padding.
  const float* from[kPoints][kPoints];
  for (int64_t r = 0; r < kPoints; ++r) {
    for (int64_t k = 0; k < kPoints; ++k) {
      const bool inside =
          row + r >= 0 && row + r < x.rows() && column + k >= 0 && column + k < x.columns();
      from[r][k] = inside ? x.at(image, row + r, column + k) : nullptr;
    }
  }
  for (int64_t c = 0; c < channels; c += Lanes::kWidth) {
    transform_both<6, 6>(
        source_to_points,
        [&](int r, int k) { return from[r][k] ? Lanes::load(from[r][k] + c) : Lanes(0); },
        [&](int r, int k, Lanes value) { value.store(points + (r * kPoints + k) * step + c); });
  }
}

// Tiles should be full enough and many enough to be worth the transforms.
bool suits_winograd(const Correlation<float>& c) {
  const auto plain = [](const Axis& axis) {
    return axis.taps == kKernel && axis.step == 1 && axis.tap_step == 1 && axis.target_step == 1 &&
           axis.target_first == 0;
  };
  const auto many = [](int64_t channels) { return channels >= 32 && channels % 16 == 0; };
  return fast_conv2d() && plain(c.h) && plain(c.w) && c.groups == 1 && many(c.source_channels) &&
         many(c.target_channels) && c.h.results >= 3 && c.w.results >= 3 &&
         Tiles(c.source.size(0), c.h.results, c.w.results).count >= 2 * kRows;
}

void winograd(const Correlation<float>& correlation) { Winograd(correlation).run(); }

}  // namespace tg::kernels::conv
