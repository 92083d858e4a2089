// What the forward and the backward of attention share: where heads lie, products of blocks, and
// the scores of a block of keys with a panel of queries.
//
// Scores are computed transposed, keys down and queries across: a packet holds one key's scores
// with neighbouring queries, so the sums of softmax run down the columns without a horizontal step
// or an odd end, k and v are read where they lie, and only a few rows of q are ever packed.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "tapegrad/kernels/attention.h"
#include "tapegrad/kernels/cpu/gemm/micro_kernel.h"
#include "tapegrad/kernels/cpu/gemm/pack.h"
#include "tapegrad/kernels/cpu/row_math.h"
#include "tapegrad/kernels/cpu/scratch.h"
#include "tapegrad/kernels/dropout_draw.h"

namespace tg::kernels::attention_detail {

// A matrix in memory: rows `row` apart, values within a row next to each other.
template <class T>
struct Matrix {
  T* data = nullptr;
  int64_t row = 0;
  T* at(int64_t i) const { return data + i * row; }
};

// Where the matrix of a head lies in an operand [.., rows, columns].
template <class Pointer>
struct HeadsOf {
  explicit HeadsOf(const BasicView<Pointer>& view) : view_(view) {}
  int64_t offset(int64_t head) const {
    int64_t offset = 0;
    for (int d = view_.rank() - 3; d >= 0; --d) {
      offset += head % view_.size(d) * view_.stride(d);
      head /= view_.size(d);
    }
    return offset;
  }
  template <class T>
  Matrix<T> matrix(int64_t head) const {
    return {static_cast<T*>(view_.data) + offset(head), view_.stride(view_.rank() - 2)};
  }
  const BasicView<Pointer> view_;
};

struct Sizes {
  explicit Sizes(View q, View k, View v)
      : queries(q.size(q.rank() - 2)),
        keys(k.size(k.rank() - 2)),
        width(q.size(q.rank() - 1)),
        value_width(v.size(v.rank() - 1)),
        heads(1) {
    for (int d = 0; d < q.rank() - 2; ++d) heads *= q.size(d);
  }
  int64_t queries, keys, width, value_width, heads;
};

// The left operand of a product: element (i, k) at data[i * row + k * step].
template <class T>
struct Left {
  const T* data;
  int64_t row, step;
};

// c [rows, columns] = a b, or += it. b has `depth` rows.
template <class T>
void block_product(int64_t rows, int64_t columns, int64_t depth, const Left<T>& a,
                   const Matrix<const T>& b, const Matrix<T>& c, bool add) {
  constexpr int64_t kRows = gemm::kTileRows<T>, kColumns = gemm::kTileColumns<T>;
  const int64_t tiles = (rows + kRows - 1) / kRows, least = rows / std::max<int64_t>(tiles, 1);
  const int64_t longer = tiles ? rows % tiles : 0;
  gemm::Tile<T> tile;
  tile.layout = a.row == 1 ? gemm::ALayout::transposed : gemm::ALayout::strided;
  tile.depth = tile.last_depth = depth;
  tile.a_row = a.row;
  tile.a_depth = a.step;
  tile.b_depth = b.row;
  tile.c_row = c.row;
  tile.addend_row = c.row;
  for (int64_t j = 0; j < columns; j += kColumns) {
    tile.columns = static_cast<int>(std::min(kColumns, columns - j));
    tile.b = b.data + j;
    int64_t i = 0;
    for (int64_t t = 0; t < tiles; ++t, i += tile.rows) {
      tile.rows = static_cast<int>(least + (t < longer));
      tile.a = a.data + i * a.row;
      tile.c = c.at(i) + j;
      tile.addend = add ? tile.c : nullptr;
      gemm::run_tile(tile);
    }
  }
}

// Rows of k or v as the micro-kernel reads them best: tiles of kTileRows rows, each of them in
// pieces of kBlock values. Heads that come out of one big product lie far apart row by row; here
// they are read once and stay near.
template <class T>
class PackedRows {
 public:
  PackedRows(int64_t most_rows, int64_t width)
      : width_(width),
        pieces_(std::max<int64_t>(1, (width + gemm::kBlock - 1) / gemm::kBlock)),
        memory_((most_rows + kRows) * pieces_ * gemm::kBlock) {}

  void pack(const Matrix<const T>& x, int64_t rows) {
    rows_ = rows;
    for (int64_t i = 0; i < rows; i += kRows) {
      gemm::pack_a_rows(x.at(i), x.row, static_cast<int>(std::min(kRows, rows - i)), width_,
                        tile_at(i));
    }
  }
  // c [rows, columns] = packed rows x panel, for the first `rows` rows; the panel is
  // [width][columns].
  void times(int64_t rows, const T* panel, int64_t columns, const Matrix<T>& c) const {
    gemm::Tile<T> tile;
    tile.columns = static_cast<int>(columns);
    tile.layout = gemm::ALayout::blocked;
    tile.segments = pieces_;
    tile.depth = gemm::kBlock;
    tile.last_depth = width_ - gemm::kBlock * (pieces_ - 1);
    tile.a_row = gemm::kBlock;
    tile.b = panel;
    tile.b_depth = columns;
    tile.b_segment = gemm::kBlock * columns;
    tile.c_row = c.row;
    for (int64_t i = 0; i < rows; i += kRows) {
      tile.rows = static_cast<int>(std::min(kRows, rows - i));
      tile.a = tile_at(i);
      tile.a_segment = gemm::kBlock * std::min(kRows, rows_ - i);
      tile.c = c.at(i);
      gemm::run_tile(tile);
    }
  }

 private:
  static constexpr int64_t kRows = gemm::kTileRows<T>;
  T* tile_at(int64_t row) const { return memory_.data() + row * pieces_ * gemm::kBlock; }
  int64_t width_, pieces_, rows_ = 0;
  Scratch<T> memory_;
};

// A panel: as many queries as the micro-kernel has columns, a whole number of packets.
template <class T>
constexpr int64_t kPanel = gemm::kTileColumns<T>;
template <class T>
constexpr int64_t kPanelPackets = kPanel<T> / kLanes<T>;

// The distance between two rows of scores with `queries` queries: one line of memory more, so that
// the values of one query do not all fall into a few sets of the first-level cache.
template <class T>
constexpr int64_t score_row(int64_t queries) {
  return queries + 64 / int64_t{sizeof(T)};
}

// rows of x, times factor, as panels [width][kPanel]; columns past `rows` are 0.
template <class T>
void pack_queries(const Matrix<const T>& x, int64_t rows, int64_t width, T factor, T* to) {
  for (int64_t i = 0; i < rows; i += kPanel<T>, to += width * kPanel<T>) {
    const int64_t count = std::min(kPanel<T>, rows - i);
    if (count < kPanel<T>) std::fill_n(to, width * kPanel<T>, T(0));
    gemm::pack_b_columns(x.at(i), x.row, static_cast<int>(count), width, to);
    if (factor == T(1)) continue;
    const Packet<T> f = packet::set(factor);
    map_row(
        width * kPanel<T>, T(0), to, [&](const Packet<T>& v) { return packet::pmul(v, f); },
        static_cast<const T*>(to));
  }
}

// The mask of one head, with which it answers for any (query, key).
template <class T>
class Mask {
 public:
  Mask(View view, int64_t head) : none_(!view.data) {
    if (none_) return;
    const HeadsOf<const void*> heads(view);
    boolean_ = view.dtype == DType::boolean;
    query_step_ = view.stride(view.rank() - 2);
    key_step_ = view.stride(view.rank() - 1);
    const int64_t offset = heads.offset(head);
    if (boolean_)
      bools_ = view.as<bool>() + offset;
    else
      values_ = view.as<T>() + offset;
  }

  // Adds the mask to scores [keys][kPanel] (rows `row` apart) that begin at (query, key); false is
  // -inf, and so is what meets -inf, be it NaN.
  void add_to(T* scores, int64_t row, int64_t query, int64_t queries, int64_t key,
              int64_t keys) const {
    if (none_) return;
    constexpr T kHidden = -std::numeric_limits<T>::infinity();
    for (int64_t t = 0; t < queries; ++t) {
      const int64_t from = (query + t) * query_step_ + key * key_step_;
      T* to = scores + t;
      for (int64_t s = 0; s < keys; ++s, to += row) {
        if (boolean_) {
          if (!bools_[from + s * key_step_]) *to = kHidden;
        } else {
          const T m = values_[from + s * key_step_];
          *to = m == kHidden ? kHidden : *to + m;
        }
      }
    }
  }

 private:
  bool none_, boolean_ = false;
  const bool* bools_ = nullptr;
  const T* values_ = nullptr;
  int64_t query_step_ = 0, key_step_ = 0;
};

// How many keys from `key` on some query up to `last_query` sees.
inline int64_t visible_keys(bool causal, int64_t last_query, int64_t key, int64_t keys) {
  return causal ? std::clamp<int64_t>(last_query + 1 - key, 0, keys) : keys;
}

// -inf where a key lies behind its query; scores [keys][kPanel] begin at (query, key).
template <class T>
void hide_later_keys(T* scores, int64_t row, int64_t query, int64_t key, int64_t keys) {
  for (int64_t s = std::max<int64_t>(0, query + 1 - key); s < keys; ++s) {
    std::fill_n(scores + s * row, std::min(kPanel<T>, key + s - query),
                -std::numeric_limits<T>::infinity());
  }
}

// What dropout does to the weights of one head.
template <class T>
class WeightDropout {
 public:
  WeightDropout(const Dropout& dropout, const Sizes& sizes, int64_t head)
      : active_(dropout.probability > 0), draw_(dropout), sizes_(sizes), head_(head) {}
  bool active() const { return active_; }
  // For the weights of one key with kPanel queries from `query` on: 0, or 1 / (1 - probability).
  void factors(int64_t query, int64_t key, T* to) const {
    const int64_t index = attention_index(head_, query, key, sizes_.queries, sizes_.keys);
    const T factor = T(draw_.factor());
    static_assert(kPanel<T> % 4 == 0);
    for (int64_t t = 0; t < kPanel<T>; t += 4) {
      const RandomBlock block = draw_.block(uint64_t(index + t) / 4);
      for (int i = 0; i < 4; ++i) to[t + i] = draw_.keeps(block.word[i]) ? factor : T(0);
    }
  }

 private:
  bool active_;
  DropoutDraw draw_;
  const Sizes& sizes_;
  int64_t head_;
};

}  // namespace tg::kernels::attention_detail
