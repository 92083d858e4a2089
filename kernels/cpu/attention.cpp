// Forward: for each block of queries, one block of keys after the other. The largest score, the sum
// of exponentials and the output so far are kept per query and rescaled when a larger score turns
// up (online softmax). Which blocks there are depends on the sizes alone, and blocks of queries do
// not touch each other: any number of threads gives the same bits.
#include "tapegrad/kernels/attention.h"

#include <algorithm>
#include <cmath>

#include "tapegrad/core/parallel.h"
#include "tapegrad/kernels/cpu/attention_block.h"
#include "tapegrad/kernels/cpu/rows.h"
#include "tapegrad/kernels/cpu/scratch.h"

namespace tg::kernels {
namespace attention_detail {
namespace {

constexpr int64_t kQueries = 64;  // of a block: a whole number of panels
constexpr int64_t kKeys = 128;    // the scores of a block (32 KB in f32) stay near the core

// The softmax of one panel so far.
template <class T>
struct Running {
  alignas(64) T largest[kPanel<T>];
  alignas(64) T sum[kPanel<T>];
  alignas(64) T rescale[kPanel<T>];  // what the last block asks of the output so far
  void reset() {
    std::fill_n(largest, kPanel<T>, -std::numeric_limits<T>::infinity());
    std::fill_n(sum, kPanel<T>, T(0));
  }
};

// scores [keys][kPanel] -> exp(score - largest so far), `running` brought up to date.
template <class T>
void softmax_panel(T* scores, int64_t row, int64_t keys, Running<T>& running) {
  constexpr T kLowest = -std::numeric_limits<T>::infinity();
  using namespace Eigen::internal;
  for (int64_t x = 0; x < kPanel<T>; x += kLanes<T>) {
    T* column = scores + x;
    const Packet<T> before = packet::load(running.largest + x);
    Packet<T> high[2] = {before, before};
    for (int64_t s = 0; s < keys; ++s) {
      high[s & 1] = packet::pmax(high[s & 1], packet::load(column + s * row));
    }
    const Packet<T> largest = packet::pmax(high[0], high[1]);
    // A query that has seen no key yet: -inf - -inf would be NaN.
    const Packet<T> shift =
        packet::pselect(pcmp_eq(largest, packet::set(kLowest)), packet::set(T(0)), largest);
    Packet<T> sum[2] = {packet::set(T(0)), packet::set(T(0))};
    for (int64_t s = 0; s < keys; ++s) {
      const Packet<T> e = packet::exp<T>(packet::psub(packet::load(column + s * row), shift));
      packet::store(column + s * row, e);
      sum[s & 1] = packet::padd(sum[s & 1], e);
    }
    const Packet<T> rescale = packet::exp<T>(packet::psub(before, shift));
    packet::store(running.largest + x, largest);
    packet::store(running.rescale + x, rescale);
    packet::store(running.sum + x, packet::pmadd(packet::load(running.sum + x), rescale,
                                                 packet::padd(sum[0], sum[1])));
  }
}

template <class T>
class QueryBlock {
 public:
  QueryBlock(const Sizes& sizes, const Attention& o)
      : sizes_(sizes),
        o_(o),
        packed_(kQueries * sizes.width),
        packed_k_(std::min(kKeys, sizes.keys), sizes.width),
        scores_(std::min(kKeys, sizes.keys) * kRow) {}

  // Rows [first, first + kQueries) of y and log_sums.
  void run(int64_t head, int64_t first, Matrix<const T> q, Matrix<const T> k, Matrix<const T> v,
           View mask, Matrix<T> y, T* log_sums) {
    first_ = first;
    count_ = std::min(kQueries, sizes_.queries - first);
    const Mask<T> hidden(mask, head);
    const WeightDropout<T> dropout(o_.dropout, sizes_, head);
    pack_queries<T>({q.at(first), q.row}, count_, sizes_.width, T(o_.scale), packed_.data());
    for (auto& r : running_) r.reset();
    const int64_t seen = visible_keys(o_.causal, first + count_ - 1, 0, sizes_.keys);
    for (int64_t key = 0; key < seen; key += kKeys) {
      const int64_t keys = std::min(kKeys, seen - key);
      weights(k, key, keys, hidden, dropout);
      add_values(v, key, keys, {y.at(first), y.row});
    }
    finish({y.at(first), y.row}, seen, log_sums + first);
  }

 private:
  // The unnormalised weights [keys][kQueries] of one block of keys.
  void weights(const Matrix<const T>& k, int64_t key, int64_t keys, const Mask<T>& hidden,
               const WeightDropout<T>& dropout) {
    packed_k_.pack({k.at(key), k.row}, keys);
    for (int64_t i = 0, p = 0; i < count_; i += kPanel<T>, ++p) {
      const int64_t queries = std::min(kPanel<T>, count_ - i), query = first_ + i;
      const int64_t seen = visible_keys(o_.causal, query + queries - 1, key, keys);
      T* panel = scores_.data() + i;
      packed_k_.times(seen, packed_.data() + i * sizes_.width, kPanel<T>, {panel, kRow});
      hidden.add_to(panel, kRow, query, queries, key, seen);
      if (o_.causal) hide_later_keys(panel, kRow, query, key, seen);
      softmax_panel(panel, kRow, seen, running_[p]);
      if (dropout.active()) {
        for (int64_t s = 0; s < seen; ++s) {
          alignas(64) T factor[kPanel<T>];
          dropout.factors(query, key + s, factor);
          T* w = panel + s * kRow;
          for (int64_t t = 0; t < kPanel<T>; ++t) w[t] = factor[t] == 0 ? T(0) : w[t] * factor[t];
        }
      }
      for (int64_t s = seen; s < keys; ++s) std::fill_n(panel + s * kRow, kPanel<T>, T(0));
    }
  }

  // y = rescale y + weights^T v
  void add_values(const Matrix<const T>& v, int64_t key, int64_t keys, const Matrix<T>& y) {
    if (key > 0) {
      for (int64_t i = 0; i < count_; ++i) {
        const T factor = running_[i / kPanel<T>].rescale[i % kPanel<T>];
        if (factor != T(1)) scale_row(y.at(i), factor);
      }
    }
    constexpr int64_t kRows = gemm::kTileRows<T>;
    for (int64_t i = 0; i < count_; i += kRows) {
      const int64_t rows = std::min(kRows, count_ - i);
      const int64_t depth = visible_keys(o_.causal, first_ + i + rows - 1, key, keys);
      if (depth == 0 && key > 0) continue;
      block_product<T>(rows, sizes_.value_width, depth, {scores_.data() + i, 1, kRow},
                       {v.at(key), v.row}, {y.at(i), y.row}, key > 0);
    }
  }

  void finish(const Matrix<T>& y, int64_t seen, T* log_sums) {
    for (int64_t i = 0; i < count_; ++i) {
      const Running<T>& r = running_[i / kPanel<T>];
      const T sum = r.sum[i % kPanel<T>];
      if (seen == 0 || sum == 0) {
        std::fill_n(y.at(i), sizes_.value_width, T(0));
        log_sums[i] = std::numeric_limits<T>::infinity();
      } else {
        scale_row(y.at(i), 1 / sum);
        log_sums[i] = r.largest[i % kPanel<T>] + std::log(sum);
      }
    }
  }

  void scale_row(T* row, T factor) {
    const Packet<T> f = packet::set(factor);
    map_row(
        sizes_.value_width, T(0), row, [&](const Packet<T>& x) { return packet::pmul(x, f); },
        static_cast<const T*>(row));
  }

  static constexpr int64_t kRow = score_row<T>(kQueries);
  const Sizes& sizes_;
  const Attention& o_;
  int64_t first_ = 0, count_ = 0;
  Scratch<T> packed_;
  PackedRows<T> packed_k_;
  Scratch<T> scores_;
  std::array<Running<T>, size_t(kQueries / kPanel<T>)> running_;
};

}  // namespace

}  // namespace attention_detail

void attention(Cpu, View q, View k, View v, View mask, MutView y, MutView log_sums, Attention o) {
  using namespace attention_detail;
  const Sizes sizes(q, k, v);
  const int64_t blocks = (sizes.queries + kQueries - 1) / kQueries;
  const HeadsOf<const void*> qs(q), ks(k), vs(v);
  const HeadsOf<void*> ys(y);
  visit_float(q.dtype, [&]<class T>() {
    parallel_for(sizes.heads * blocks, 1, [&](int64_t begin, int64_t end) {
      QueryBlock<T> block(sizes, o);
      for (int64_t item = begin; item < end; ++item) {
        // The longest ones first, where the mask is causal.
        const int64_t head = item % sizes.heads, at = blocks - 1 - item / sizes.heads;
        block.run(head, at * kQueries, qs.matrix<const T>(head), ks.matrix<const T>(head),
                  vs.matrix<const T>(head), mask, ys.matrix<T>(head),
                  log_sums.as<T>() + head * sizes.queries);
      }
    });
  });
}

}  // namespace tg::kernels
