#include "tapegrad/kernels/cpu/conv2d/weight_gradient.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "tapegrad/core/allocator.h"
#include "tapegrad/core/parallel.h"
#include "tapegrad/kernels/cpu/conv2d/image.h"
#include "tapegrad/kernels/cpu/conv2d/winograd.h"
#include "tapegrad/kernels/cpu/gemm/micro_kernel.h"
#include "tapegrad/kernels/cpu/gemm/pack.h"
#include "tapegrad/kernels/cpu/scratch.h"

namespace tg::kernels::conv {
namespace {

using gemm::kTileColumns;
using gemm::kTileRows;
using gemm::Tile;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// dweight of one group as a matrix [co][taps]: rows are output channels, columns are the positions
// (ky, kx, ci) of a window, and the sum runs over pixels, a chunk of them at a time:
//
//   dy    packed as [tile of co][pixel][rows of the tile], once for a chunk
//   x     one panel of columns after the other, packed as [pixel][kColumns]; it stays in the
//         first-level cache while all tiles of co pass over it
//
// The pixels are cut into parts, each with a dweight of its own, added up in their order at the
// end. Parts and chunks depend on the shape alone, so any number of threads gives the same bits.
template <class T>
class WeightGradient {
 public:
  WeightGradient(View x, View dy, MutView dweight, const Axis& h, const Axis& w, int64_t groups)
      : x_(x), dy_(dy), dweight_(dweight), h_(h), w_(w), groups_(groups) {
    co_ = dweight.size(0) / groups;
    ci_ = dweight.size(1);
    depth_ = h.taps * w.taps * ci_;
    tiles_ = divide_up(co_, kRows);
    panels_ = divide_up(depth_, kColumns);
    rows_ = x.size(0) * h.results;
    chunk_rows_ = std::max<int64_t>(1, kChunkPixels / w.results);
    chunks_ = divide_up(rows_, chunk_rows_);
    const int64_t bytes = dweight.numel * int64_t{sizeof(T)};
    parts_ = std::clamp<int64_t>(kPartialBytes / bytes, 1, std::min<int64_t>(chunks_, kMostParts));
    panel_blocks_ = std::clamp<int64_t>(kPieces / (parts_ * groups), 1, divide_up(panels_, 4));
  }

  void run() {
    const int64_t size = groups_ * co_ * depth_;
    Workspace sums(static_cast<size_t>(parts_ * size) * sizeof(T));
    const int64_t items = groups_ * parts_ * panel_blocks_;
    const double work = 2.0 * static_cast<double>(rows_ * w_.results) * static_cast<double>(size);
    parallel_for(items, work < kSerialWork ? items : 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t block = i % panel_blocks_, part = i / panel_blocks_ % parts_;
        const int64_t group = i / panel_blocks_ / parts_;
        run_item(group, part, block, sums.as<T>() + part * size + group * co_ * depth_);
      }
    });
    write_sums(sums.as<T>(), size);
  }

 private:
  static constexpr int64_t kRows = kTileRows<T>, kColumns = kTileColumns<T>;
  static constexpr int64_t kChunkPixels = 256;  // a panel of x: 16 KB in f32 and f64
  static constexpr int64_t kPartialBytes = 8 << 20, kMostParts = 8, kPieces = 16;
  static constexpr double kSerialWork = 2e6;

  // A run of result rows of one image, and where their source rows were loaded to.
  struct Rows {
    int64_t image, row, rows;
    const T* at;  // source row h.first + row * h.step, column w.first
  };

  void run_item(int64_t group, int64_t part, int64_t block, T* sum) const {
    const int64_t first_chunk = chunks_ * part / parts_, end = chunks_ * (part + 1) / parts_;
    const int64_t panel = panels_ * block / panel_blocks_;
    const int64_t end_panel = panels_ * (block + 1) / panel_blocks_;
    Scratch<T> packed_dy(tiles_ * tile_size());
    Scratch<T> packed_x(chunk_rows_ * w_.results * kColumns);
    for (int64_t chunk = first_chunk; chunk < end; ++chunk) {
      std::vector<Rows> pieces = pieces_of(chunk);
      Scratch<T> sources(source_size(pieces));
      load_sources(group, pieces, sources.data());
      const int64_t count = pack_dy(group, pieces, packed_dy.data());
      for (int64_t p = panel; p < end_panel; ++p) {
        pack_panel(pieces, p, packed_x.data());
        run_panel(packed_dy.data(), packed_x.data(), count, p, chunk == first_chunk, sum);
      }
    }
  }

  std::vector<Rows> pieces_of(int64_t chunk) const {
    std::vector<Rows> pieces;
    const int64_t end = std::min((chunk + 1) * chunk_rows_, rows_);
    for (int64_t r = chunk * chunk_rows_; r < end;) {
      const int64_t row = r % h_.results, rows = std::min(h_.results - row, end - r);
      pieces.push_back({r / h_.results, row, rows, nullptr});
      r += rows;
    }
    return pieces;
  }

  int64_t source_columns() const { return w_.span(w_.results); }
  int64_t source_size(const std::vector<Rows>& pieces) const {
    int64_t size = 0;
    for (const Rows& p : pieces) size += h_.span(p.rows) * source_columns() * ci_;
    return size;
  }

  void load_sources(int64_t group, std::vector<Rows>& pieces, T* to) const {
    for (Rows& p : pieces) {
      const int64_t rows = h_.span(p.rows);
      load(
          x_,
          {p.image, group * ci_, ci_, h_.first + p.row * h_.step, rows, w_.first, source_columns()},
          to);
      p.at = to;
      to += rows * source_columns() * ci_;
    }
  }

  int64_t first_row(int64_t tile) const { return co_ * tile / tiles_; }
  int tile_rows(int64_t t) const { return static_cast<int>(first_row(t + 1) - first_row(t)); }
  // Packing writes whole registers, so each tile has room behind its last pixel.
  int64_t tile_size() const { return kRows * chunk_rows_ * w_.results + 2 * kColumns; }

  // dy of the chunk as [tile][pixel][rows of the tile]. Gives the number of pixels.
  int64_t pack_dy(int64_t group, const std::vector<Rows>& pieces, T* to) const {
    int64_t pixels = 0;
    for (const Rows& p : pieces) pixels += p.rows * w_.results;
    std::optional<Scratch<T>> copy;
    if (!has_channel_rows<T>(dy_)) copy.emplace(w_.results * co_);
    int64_t done = 0;
    for (const Rows& p : pieces) {
      for (int64_t r = 0; r < p.rows; ++r, done += w_.results) {
        const T* row;
        int64_t pixel = co_;
        if (copy) {
          load(dy_, {p.image, group * co_, co_, p.row + r, 1, 0, w_.results}, copy->data());
          row = copy->data();
        } else {
          pixel = dy_.stride(3);
          row = dy_.as<T>() + p.image * dy_.stride(0) + group * co_ * dy_.stride(1) +
                (p.row + r) * dy_.stride(2);
        }
        for (int64_t t = 0; t < tiles_; ++t) {
          const int rows = tile_rows(t);
          gemm::pack_a_columns(row + first_row(t), pixel, rows, w_.results,
                               to + t * tile_size() + done * rows);
        }
      }
    }
    return pixels;
  }

  // Columns [p * kColumns, ..) of the windows of the chunk's pixels. Where taps of a row follow
  // each other in the image, so do their columns; each run of such columns is copied at once.
  void pack_panel(const std::vector<Rows>& pieces, int64_t p, T* to) const {
    const int64_t run_size = w_.tap_step == 1 ? w_.taps * ci_ : ci_;
    const int64_t end = std::min((p + 1) * kColumns, depth_);
    for (int64_t column = p * kColumns; column < end;) {
      const int64_t run = column / run_size, within = column % run_size;
      const int64_t width = std::min(end - column, run_size - within);
      const int64_t ty = w_.tap_step == 1 ? run : run / w_.taps;
      const int64_t tx = w_.tap_step == 1 ? 0 : run % w_.taps;
      const int64_t pitch = source_columns() * ci_, step = w_.step * ci_;
      T* row_to = to + column - p * kColumns;
      for (const Rows& piece : pieces) {
        const T* from = piece.at + ty * h_.tap_step * pitch + tx * w_.tap_step * ci_ + within;
        for (int64_t r = 0; r < piece.rows; ++r) {
          copy_run(from + r * h_.step * pitch, step, width, row_to);
          row_to += w_.results * kColumns;
        }
      }
      column += width;
    }
  }

  void copy_run(const T* from, int64_t step, int64_t width, T* to) const {
    using S = gemm::Simd<T>;
    for (int64_t x = 0; x < w_.results; ++x, from += step, to += kColumns) {
      if (width == kColumns) {
        S::store(to, S::load(from));
        S::store(to + S::kLanes, S::load(from + S::kLanes));
      } else {
        for (int64_t j = 0; j < width; ++j) to[j] = from[j];
      }
    }
  }

  void run_panel(const T* packed_dy, const T* packed_x, int64_t pixels, int64_t p, bool first,
                 T* sum) const {
    Tile<T> tile;
    tile.layout = gemm::ALayout::transposed;
    tile.columns = static_cast<int>(std::min(kColumns, depth_ - p * kColumns));
    tile.depth = tile.last_depth = pixels;
    tile.a_row = 1;
    tile.b = packed_x;
    tile.b_depth = kColumns;
    tile.c_row = tile.addend_row = depth_;
    for (int64_t t = 0; t < tiles_; ++t) {
      tile.rows = tile_rows(t);
      tile.a = packed_dy + t * tile_size();
      tile.a_depth = tile.rows;
      tile.c = sum + first_row(t) * depth_ + p * kColumns;
      tile.addend = first ? nullptr : tile.c;
      gemm::run_tile(tile);
    }
  }

  // The parts added up in order, and [ky][kx][ci] of each output channel brought to the order of
  // the weight.
  void write_sums(T* sums, int64_t size) const {
    const int64_t grain = std::max<int64_t>(1, (32 << 10) / (depth_ * parts_));
    parallel_for(groups_ * co_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        T* sum = sums + c * depth_;
        for (int64_t part = 1; part < parts_; ++part) {
          const T* more = sum + part * size;
          for (int64_t i = 0; i < depth_; ++i) sum[i] += more[i];
        }
        // A pixel for each tap, ci channels each: what store() understands, with co as the image.
        store(sum, ci_, dweight_, {c, 0, ci_, 0, 1, h_.taps, 0, 1, w_.taps});
      }
    });
  }

  const View x_, dy_;
  const MutView dweight_;
  const Axis h_, w_;
  const int64_t groups_;
  int64_t co_, ci_, depth_;  // of one group; depth: columns of the matrix
  int64_t tiles_, panels_;   // the matrix in register tiles
  int64_t rows_, chunk_rows_, chunks_, parts_;
  int64_t panel_blocks_;
};

}  // namespace

template <class T>
void weight_gradient(View x, View dy, MutView dweight, const Axis& h, const Axis& w,
                     int64_t groups) {
  if (dweight.numel == 0) return;
  if (dy.numel == 0) {
    for (int64_t c = 0; c < dweight.size(0); ++c) {
      store<T>(nullptr, 0, dweight, {c, 0, dweight.size(1), 0, 1, h.taps, 0, 1, w.taps});
    }
    return;
  }
  if constexpr (std::is_same_v<T, float>) {
    if (suits_winograd_weight(x, dy, dweight, h, w, groups)) {
      return winograd_weight(x, dy, dweight, h, w);
    }
  }
  WeightGradient<T>(x, dy, dweight, h, w, groups).run();
}

template void weight_gradient<float>(View, View, MutView, const Axis&, const Axis&, int64_t);
template void weight_gradient<double>(View, View, MutView, const Axis&, const Axis&, int64_t);

}  // namespace tg::kernels::conv
