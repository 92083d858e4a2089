// One block of C computed by one thread: the loops around the micro-kernel.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>

#include "tapegrad/kernels/cpu/gemm/gemm.h"
#include "tapegrad/kernels/cpu/gemm/pack.h"
#include "tapegrad/kernels/cpu/scratch.h"

namespace tg::kernels::gemm {

// Lines of a first-level and second-level cache that the blocks below are cut for, in values.
template <class T>
constexpr int64_t kLevelTwoBlock = (256 << 10) / int64_t{sizeof(T)};

// Computes a Product in slices of `slice` inner steps (a multiple of kBlock, chosen from the whole
// problem's shape by the caller, since the slices are what decides the bits).
//
// A slice of B is cut into panels of kTileColumns columns, A into tiles of up to kTileRows rows.
// The first tile that meets a panel reads B where it lies and writes the packed panel on the way;
// the tiles below read the packed form. Two loop orders:
//   panels outside: one panel stays in the first-level cache while all tiles pass over it;
//   tiles outside (shallow slice, wide B): all panels of a block stay in the second-level cache,
//   and C is written along its rows.
template <class T>
class BlockProduct {
 public:
  BlockProduct(const Product<T>& product, int64_t slice) : p_(product), slice_(slice) {
    tiles_ = (p_.rows + kRows - 1) / kRows;
    rows_per_tile_ = p_.rows / tiles_;
    longer_tiles_ = p_.rows % tiles_;
    raw_b_ = read_b_in_place();
    tiles_outside_ = !raw_b_ && p_.depth <= 192 && p_.columns >= 8 * kColumns && tiles_ >= 4;
    block_columns_ =
        tiles_outside_
            ? std::clamp<int64_t>(kLevelTwoBlock<T> / slice_ / kColumns * kColumns, kColumns, 1024)
            : 1024;
    const int64_t fit = std::clamp<int64_t>(kLevelTwoBlock<T> / slice_ / kRows, 4, 60);
    row_blocks_ = tiles_ <= fit * 3 / 2 ? 1 : (tiles_ + fit - 1) / fit;
    direct_a_ = read_a_in_place();
    prefetch_c_ = p_.rows * p_.columns * int64_t{sizeof(T)} > 192 << 10;
    group_ = !raw_b_ && !p_.b_transposed && tiles_ >= kManyTiles ? kGroup : 1;
    one_group_ = row_blocks_ == 1 && !tiles_outside_;  // done with before the next begins
    const int64_t panel = (slice_ + kBlock) * kColumns;
    if (!raw_b_) {
      const int64_t widest = std::min(p_.columns, block_columns_);
      const int64_t panels = one_group_ ? group_ : (widest + kColumns - 1) / kColumns;
      packed_b_.emplace(panels * panel);
    }
    if (!direct_a_) {
      const int64_t most = (tiles_ + row_blocks_ - 1) / row_blocks_;
      packed_a_.emplace(most * kRows * slice_ + 4 * kColumns);
    }
  }

  void run() {
    int64_t from = 0;
    do {
      depth_from_ = from;
      depth_ = std::min(slice_, p_.depth - from);
      for (int64_t j = 0; j < p_.columns; j += block_columns_) {
        column_from_ = j;
        columns_ = std::min(block_columns_, p_.columns - j);
        for (int64_t block = 0; block < row_blocks_; ++block) run_block(block);
      }
      from += slice_;
    } while (from < p_.depth);
  }

 private:
  static constexpr int kRows = kTileRows<T>, kColumns = kTileColumns<T>;
  static constexpr int64_t kManyTiles = 16, kGroup = 4;

  // Even split: 13, 13, 13 rows instead of 14, 14, 11.
  int64_t first_row(int64_t tile) const {
    return tile * rows_per_tile_ + std::min(tile, longer_tiles_);
  }
  int tile_rows(int64_t tile) const {
    return static_cast<int>(first_row(tile + 1) - first_row(tile));
  }

  // A small B is read where it lies, if the lines of a panel do not all fall into the same few sets
  // of the first-level cache (64 sets; half of its 8 ways are left to A and C).
  bool read_b_in_place() const {
    constexpr int64_t kLine = 64 / sizeof(T), kSets = 64;
    if (p_.b_transposed || p_.depth * p_.columns > kLevelTwoBlock<T> / 2) return false;
    const int64_t sets =
        p_.b_row % kLine == 0 ? kSets / std::gcd(p_.b_row / kLine, kSets) : kSets / 2;
    return tiles_ == 1 || p_.depth <= 4 * sets;
  }

  // Packing A pays when it is read often and its rows lie badly for the cache.
  bool read_a_in_place() const {
    if (p_.columns <= 2 * kColumns) return true;
    const int64_t values = p_.rows * slice_, line = 64 / int64_t{sizeof(T)};
    if (p_.a_transposed) {
      return values <= kLevelTwoBlock<T> && (p_.a_row % (4 * line) != 0 || tiles_ <= 6);
    }
    return values <= 4096 ||
           (values <= kLevelTwoBlock<T> && p_.a_row % 256 != 0 && p_.columns <= 8 * kColumns);
  }

  void run_block(int64_t block) {
    first_tile_ = tiles_ * block / row_blocks_;
    end_tile_ = tiles_ * (block + 1) / row_blocks_;
    packs_b_ = block == 0;
    if (tiles_outside_) {
      for (int64_t t = first_tile_; t < end_tile_; ++t) {
        if (!direct_a_) pack_a(t);
        for (int64_t j = 0; j < columns_; j += kColumns) run_one_tile(t, j);
      }
      return;
    }
    if (!direct_a_) {
      for (int64_t t = first_tile_; t < end_tile_; ++t) pack_a(t);
    }
    for (int64_t j = 0; j < columns_; j += kColumns) {
      for (int64_t t = first_tile_; t < end_tile_; ++t) run_one_tile(t, j);
    }
  }

  T* packed_tile(int64_t t) const { return packed_a_->data() + (t - first_tile_) * kRows * slice_; }

  void pack_a(int64_t t) {
    const int64_t i = first_row(t);
    if (p_.a_transposed) {
      pack_a_columns(p_.a + depth_from_ * p_.a_row + i, p_.a_row, tile_rows(t), depth_,
                     packed_tile(t));
    } else {
      pack_a_rows(p_.a + i * p_.a_row + depth_from_, p_.a_row, tile_rows(t), depth_,
                  packed_tile(t));
    }
  }

  void point_at_a(int64_t t, Tile<T>& tile) const {
    const int64_t i = first_row(t);
    tile.depth = tile.last_depth = depth_;
    if (direct_a_) {
      tile.layout = p_.a_transposed ? ALayout::transposed : ALayout::strided;
      tile.a =
          p_.a_transposed ? p_.a + depth_from_ * p_.a_row + i : p_.a + i * p_.a_row + depth_from_;
      tile.a_row = p_.a_transposed ? 1 : p_.a_row;
      tile.a_depth = p_.a_transposed ? p_.a_row : 1;
      return;
    }
    tile.a = packed_tile(t);
    if (p_.a_transposed) {
      tile.layout = ALayout::transposed;
      tile.a_row = 1;
      tile.a_depth = tile.rows;
      return;
    }
    tile.layout = ALayout::blocked;
    tile.a_row = kBlock;
    tile.segments = std::max<int64_t>(1, (depth_ + kBlock - 1) / kBlock);
    tile.depth = kBlock;
    tile.last_depth = depth_ - kBlock * (tile.segments - 1);
    tile.a_segment = kBlock * tile.rows;
    tile.b_segment = kBlock * tile.b_depth;
  }

  void run_one_tile(int64_t t, int64_t j) {
    const int64_t i = first_row(t), column = column_from_ + j;
    Tile<T> tile;
    tile.rows = tile_rows(t);
    tile.columns = static_cast<int>(std::min<int64_t>(kColumns, columns_ - j));
    tile.c = p_.c + i * p_.c_row + column;
    tile.c_row = p_.c_row;
    if (depth_from_ > 0) {
      tile.addend = tile.c;
      tile.addend_row = p_.c_row;
    } else if (p_.addend) {
      tile.addend = p_.addend + i * p_.addend_row + column;
      tile.addend_row = p_.addend_row;
    }
    tile.prefetch_c = prefetch_c_;

    const bool first = packs_b_ && t == first_tile_;
    T* panel = nullptr;
    if (!raw_b_) {
      panel = packed_b_->data() + (one_group_ ? j % (group_ * kColumns) : j) * depth_;
    }
    if (group_ > 1 && first && j % (group_ * kColumns) == 0) {
      pack_b_rows(p_.b + depth_from_ * p_.b_row + column, p_.b_row,
                  std::min(group_ * kColumns, columns_ - j), depth_, panel);
    }
    if (p_.b_transposed && first) {
      pack_b_columns(p_.b + column * p_.b_row + depth_from_, p_.b_row, tile.columns, depth_, panel);
    }
    if (raw_b_ || (first && !p_.b_transposed && group_ == 1)) {
      tile.b = p_.b + depth_from_ * p_.b_row + column;
      tile.b_depth = p_.b_row;
      if (!raw_b_ && tiles_ > 1) tile.packed_b = panel;
    } else {
      tile.b = panel;
      tile.b_depth = kColumns;
    }
    point_at_a(t, tile);
    if (packs_b_ && !raw_b_ && group_ == 1 && !tiles_outside_ && j + kColumns < columns_) {
      prefetch_next_panel(t, column + kColumns);
    }
    run_tile(tile);
  }

  // Each tile asks for its share of the panel that comes next, so that the first tile there finds B
  // in the second-level cache.
  void prefetch_next_panel(int64_t t, int64_t column) const {
    if (p_.depth * p_.columns <= kLevelTwoBlock<T>) return;
    constexpr int64_t kLine = 64 / sizeof(T);
    const int64_t share = t - first_tile_, shares = end_tile_ - first_tile_;
    if (p_.b_transposed) {
      const int64_t end = std::min(kColumns * (share + 1) / shares, p_.columns - column);
      for (int64_t r = kColumns * share / shares; r < end; ++r) {
        const T* row = p_.b + (column + r) * p_.b_row + depth_from_;
        for (int64_t k = 0; k < depth_; k += kLine) __builtin_prefetch(row + k, 0, 2);
      }
      return;
    }
    for (int64_t k = depth_ * share / shares; k < depth_ * (share + 1) / shares; ++k) {
      const T* row = p_.b + (depth_from_ + k) * p_.b_row + column;
      __builtin_prefetch(row, 0, 2);
      if (kColumns > kLine) __builtin_prefetch(row + kLine, 0, 2);
    }
  }

  const Product<T> p_;
  const int64_t slice_;
  int64_t tiles_, rows_per_tile_, longer_tiles_;
  int64_t block_columns_, row_blocks_;
  int64_t group_;  // panels of B that are packed together
  bool raw_b_, tiles_outside_, direct_a_, one_group_, prefetch_c_;
  std::optional<Scratch<T>> packed_a_, packed_b_;
  // Where the loops are.
  int64_t depth_from_ = 0, depth_ = 0, column_from_ = 0, columns_ = 0;
  int64_t first_tile_ = 0, end_tile_ = 0;
  bool packs_b_ = false;
};

}  // namespace tg::kernels::gemm
