#include "tapegrad/kernels/cpu/conv2d/correlate.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "tapegrad/core/allocator.h"
#include "tapegrad/core/parallel.h"
#include "tapegrad/kernels/cpu/conv2d/image.h"
#include "tapegrad/kernels/cpu/conv2d/kernel_panel.h"
#include "tapegrad/kernels/cpu/conv2d/winograd.h"
#include "tapegrad/kernels/cpu/gemm/micro_kernel.h"
#include "tapegrad/kernels/cpu/scratch.h"

namespace tg::kernels::conv {
namespace {

using gemm::kTileColumns;
using gemm::kTileRows;
using gemm::Tile;

// Below this many operations waking another thread costs more than it brings.
constexpr double kSerialWork = 2e6;
// What a piece of work reads of the images: half of a second-level cache of 512 KB.
constexpr int64_t kSourceBytes = 256 << 10;
// A kernel up to this size is read from that cache again and again.
constexpr int64_t kKernelBytes = 160 << 10;
// Pieces to aim at, so that any number of threads finds work.
constexpr int64_t kPieces = 16;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <class T>
class Correlator {
 public:
  explicit Correlator(const Correlation<T>& c)
      : c_(c),
        panels_(divide_up(c.target_channels, kColumns)),
        panel_size_(c.h.taps * c.w.taps * c.source_channels * kColumns),
        panels_memory_(static_cast<size_t>(c.groups * panels_ * panel_size_) * sizeof(T)) {
    const View& x = c_.source;
    // A row needs no copy where it has no padding and its pixels follow each other.
    in_place_ = has_channel_rows<T>(x) && c_.w.first >= 0 &&
                c_.w.first + c_.w.span(c_.w.results) <= c_.w.sources &&
                (c_.w.taps <= 1 || x.stride(3) == c_.source_channels);
    writes_in_place_ = has_channel_rows<T>(c_.target);
    cut();
  }

  void run() {
    pack_kernel();
    const int64_t items = c_.groups * image_blocks_ * bands_ * panel_blocks_;
    const double work = 2.0 * static_cast<double>(c_.source.size(0) * c_.h.results * c_.w.results) *
                        static_cast<double>(c_.groups * panels_ * panel_size_);
    parallel_for(items, work < kSerialWork ? items : 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) run_item(i);
    });
  }

 private:
  static constexpr int64_t kRows = kTileRows<T>, kColumns = kTileColumns<T>;

  // A piece of work: some images, a band of their result rows, some panels of result channels.
  // Each element's sum runs in one chain whatever piece it falls into, so the cut is free.
  struct Item {
    int64_t group, image, images, row, rows, panel, panels;
  };

  void cut() {
    const int64_t images = c_.source.size(0);
    const auto band_bytes = [&](int64_t rows) {
      return c_.h.span(rows) * c_.w.span(c_.w.results) * c_.source_channels * int64_t{sizeof(T)};
    };
    images_per_block_ =
        std::clamp<int64_t>(kSourceBytes / std::max<int64_t>(1, band_bytes(c_.h.results)), 1,
                            std::max<int64_t>(1, images / kPieces));
    image_blocks_ = divide_up(images, images_per_block_);
    const int64_t first_bytes = band_bytes(1);
    const int64_t row_bytes = std::max<int64_t>(1, band_bytes(2) - first_bytes);
    const int64_t fit = 1 + std::max<int64_t>(0, kSourceBytes - first_bytes) / row_bytes;
    bands_ = divide_up(c_.h.results, fit);
    const int64_t blocks = c_.groups * image_blocks_ * bands_;
    panel_blocks_ = std::min(panels_, divide_up(kPieces, blocks));
    if (blocks >= kPieces / 2) panel_blocks_ = 1;
  }

  Item item(int64_t i) const {
    Item it;
    const int64_t panel_block = i % panel_blocks_;
    i /= panel_blocks_;
    const int64_t band = i % bands_;
    i /= bands_;
    it.image = i % image_blocks_ * images_per_block_;
    it.group = i / image_blocks_;
    it.images = std::min(images_per_block_, c_.source.size(0) - it.image);
    it.row = c_.h.results * band / bands_;
    it.rows = c_.h.results * (band + 1) / bands_ - it.row;
    it.panel = panels_ * panel_block / panel_blocks_;
    it.panels = panels_ * (panel_block + 1) / panel_blocks_ - it.panel;
    return it;
  }

  T* packed_panel(int64_t group, int64_t panel) const {
    return panels_memory_.template as<T>() + (group * panels_ + panel) * panel_size_;
  }

  // The kernel as [group][panel][tap row][tap column][source channel][kColumns]: the order in which
  // the micro-kernel reads it. Target channels past the last one are left as they are: unread.
  void pack_kernel() {
    parallel_for(c_.groups * panels_,
                 std::max<int64_t>(1, (64 << 10) / std::max<int64_t>(1, panel_size_)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) pack_panel(i / panels_, i % panels_);
                 });
  }

  void pack_panel(int64_t group, int64_t panel) {
    const int64_t taps_h = c_.h.taps, taps_w = c_.w.taps, channels = c_.source_channels;
    // As [source channel][tap][kColumns] first, a stretch of source channels at a time.
    constexpr int64_t kStretch = 32;
    Scratch<T> lanes(kStretch * taps_h * taps_w * kColumns);
    T* to = packed_panel(group, panel);
    for (int64_t from = 0; from < channels; from += kStretch) {
      const int64_t count = std::min(kStretch, channels - from);
      pack_kernel_lanes(c_, group, panel, from, count, lanes.data());
      const T* lane = lanes.data();
      for (int64_t s = from; s < from + count; ++s) {
        for (int64_t tap = 0; tap < taps_h * taps_w; ++tap, lane += kColumns) {
          std::copy_n(lane, kColumns, to + (tap * channels + s) * kColumns);
        }
      }
    }
  }

  // The source rows of one image: row y, counted in the tensor, stands at `at + (y - first) *
  // pitch` and its pixels are `pixel` values apart.
  struct Rows {
    const T* at;
    int64_t first, pitch, pixel;
  };

  void run_item(int64_t index) {
    const Item it = item(index);
    const int64_t result_size = it.rows * c_.w.results * c_.target_channels;
    std::optional<Scratch<T>> copies, results;
    std::vector<Rows> sources = load_sources(it, copies);
    if (!writes_in_place_) results.emplace(it.images * result_size);
    const auto run = [&](int64_t n, int64_t r, int64_t p) {
      T* to = results ? results->data() + n * result_size + r * c_.w.results * c_.target_channels +
                            p * kColumns
                      : target_row(it, n, r) + p * kColumns;
      run_row(sources[static_cast<size_t>(n)], it.row + r, it.group, p, to);
    };
    // A kernel that fits the second-level cache is passed over for each row, so that results are
    // written along memory; else a panel of it stays in the cache while all images pass over it.
    if (panels_ * panel_size_ * int64_t{sizeof(T)} <= kKernelBytes) {
      for (int64_t n = 0; n < it.images; ++n)
        for (int64_t r = 0; r < it.rows; ++r)
          for (int64_t p = it.panel; p < it.panel + it.panels; ++p) run(n, r, p);
    } else {
      for (int64_t p = it.panel; p < it.panel + it.panels; ++p)
        for (int64_t n = 0; n < it.images; ++n)
          for (int64_t r = 0; r < it.rows; ++r) run(n, r, p);
    }
    for (int64_t n = 0; results && n < it.images; ++n) {
      const int64_t first = it.panel * kColumns;
      const int64_t end = std::min((it.panel + it.panels) * kColumns, c_.target_channels);
      store(results->data() + n * result_size + first, c_.target_channels, c_.target,
            {it.image + n, it.group * c_.target_channels + first, end - first,
             c_.h.target_first + it.row * c_.h.target_step, c_.h.target_step, it.rows,
             c_.w.target_first, c_.w.target_step, c_.w.results});
    }
  }

  std::vector<Rows> load_sources(const Item& it, std::optional<Scratch<T>>& copies) const {
    const View& x = c_.source;
    const int64_t channel = it.group * c_.source_channels;
    const int64_t columns = c_.w.span(c_.w.results), rows = c_.h.span(it.rows);
    const int64_t pitch = columns * c_.source_channels;
    if (!in_place_) copies.emplace(it.images * rows * pitch);
    std::vector<Rows> sources;
    for (int64_t n = 0; n < it.images; ++n) {
      if (in_place_) {
        sources.push_back({x.as<T>() + (it.image + n) * x.stride(0) + channel * x.stride(1) +
                               c_.w.first * x.stride(3),
                           0, x.stride(2), x.stride(3)});
        continue;
      }
      const int64_t first = c_.h.first + it.row * c_.h.step;
      T* copy = copies->data() + n * rows * pitch;
      load(x, {it.image + n, channel, c_.source_channels, first, rows, c_.w.first, columns}, copy);
      sources.push_back({copy, first, pitch, c_.source_channels});
    }
    return sources;
  }

  T* target_row(const Item& it, int64_t n, int64_t r) const {
    const MutView& y = c_.target;
    return y.as<T>() + (it.image + n) * y.stride(0) + it.group * c_.target_channels * y.stride(1) +
           (c_.h.target_first + (it.row + r) * c_.h.target_step) * y.stride(2) +
           c_.w.target_first * y.stride(3);
  }
  int64_t target_pixel() const {
    return writes_in_place_ ? c_.w.target_step * c_.target.stride(3) : c_.target_channels;
  }

  // One row of results, one panel of target channels. Rows of padding are skipped, not multiplied.
  void run_row(const Rows& source, int64_t row, int64_t group, int64_t panel, T* to) const {
    const int64_t first_tap = c_.h.first_tap(row), end_tap = c_.h.end_tap(row);
    const int64_t tap_size = c_.w.taps * c_.source_channels;  // of one tap row, in inner steps
    const T* bias = c_.bias ? c_.bias + group * c_.target_channels + panel * kColumns : nullptr;
    Tile<T> tile;
    tile.columns = static_cast<int>(std::min(kColumns, c_.target_channels - panel * kColumns));
    tile.a = tile.b = packed_panel(group, panel);
    tile.a_row = c_.w.step * source.pixel;
    tile.b_depth = kColumns;
    tile.c_row = target_pixel();
    tile.addend = bias;
    tile.prefetch_c = writes_in_place_;
    if (first_tap >= end_tap || tap_size == 0) return run_tiles(tile, to);  // depth 0: bias or zero
    const auto point_at_tap = [&](int64_t tap) {
      const int64_t y = c_.h.first + row * c_.h.step + tap * c_.h.tap_step;
      tile.a = source.at + (y - source.first) * source.pitch;
      tile.b = packed_panel(group, panel) + tap * tap_size * kColumns;
    };
    if (c_.w.taps == 1 || c_.w.tap_step == 1) {
      point_at_tap(first_tap);
      tile.segments = end_tap - first_tap;
      tile.depth = tile.last_depth = tap_size;
      tile.a_segment = c_.h.tap_step * source.pitch;
      tile.b_segment = tap_size * kColumns;
      return run_tiles(tile, to);
    }
    // Dilated: the taps of a row lie apart, so they are the segments and the rows are added up.
    tile.segments = c_.w.taps;
    tile.depth = tile.last_depth = c_.source_channels;
    tile.a_segment = c_.w.tap_step * source.pixel;
    tile.b_segment = c_.source_channels * kColumns;
    for (int64_t tap = first_tap; tap < end_tap; ++tap) {
      point_at_tap(tap);
      run_tiles(tile, to);
      tile.addend = to;
      tile.addend_row = tile.c_row;
    }
  }

  // The row cut into register tiles as evenly as possible.
  void run_tiles(Tile<T> tile, T* to) const {
    const int64_t tiles = divide_up(c_.w.results, kRows);
    const T* a = tile.a;
    const T* addend = tile.addend;
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t begin = c_.w.results * t / tiles, end = c_.w.results * (t + 1) / tiles;
      tile.rows = static_cast<int>(end - begin);
      tile.a = a + begin * tile.a_row;
      tile.c = to + begin * tile.c_row;
      if (addend) tile.addend = addend + begin * tile.addend_row;
      gemm::run_tile(tile);
    }
  }

  const Correlation<T> c_;
  const int64_t panels_, panel_size_;  // panels of kColumns target channels in a group
  Workspace panels_memory_;
  bool in_place_, writes_in_place_;
  int64_t images_per_block_ = 1, image_blocks_ = 1, bands_ = 1, panel_blocks_ = 1;
};

}  // namespace

template <class T>
void correlate(const Correlation<T>& correlation) {
  if (correlation.target.size(0) == 0 || correlation.target_channels == 0 ||
      correlation.h.results <= 0 || correlation.w.results <= 0)
    return;
  if constexpr (std::is_same_v<T, float>) {
    if (suits_winograd(correlation)) return winograd(correlation);
  }
  Correlator<T>(correlation).run();
}

template void correlate(const Correlation<float>&);
template void correlate(const Correlation<double>&);

}  // namespace tg::kernels::conv
