// Backward: the weights are computed again from the scores and the saved log of their sum. One walk
// over blocks of queries and, inside, blocks of keys gives all three gradients. Where there are
// fewer heads than threads, dq is made by blocks of queries and dk, dv by blocks of keys, each on
// its own; every sum still runs in the same order, so the bits are the same.
#include <algorithm>

#include "tapegrad/core/parallel.h"
#include "tapegrad/kernels/attention.h"
#include "tapegrad/kernels/cpu/attention_block.h"
#include "tapegrad/kernels/cpu/rows.h"
#include "tapegrad/kernels/cpu/scratch.h"

namespace tg::kernels {
namespace attention_detail {
namespace {

constexpr int64_t kQueries = 64;  // of a block: a whole number of panels
constexpr int64_t kKeys = 64;     // the two blocks of scores (32 KB in f32) stay near the core

template <class T>
struct HeadOperands {
  Matrix<const T> q, k, v, y, dy;
  const T* log_sums;
  Matrix<T> dq, dk, dv;  // data null: not wanted
};

struct Range {
  int64_t begin, end;
};

template <class T>
void zero_rows(const Matrix<T>& m, Range rows, int64_t columns) {
  if (!m.data) return;
  for (int64_t i = rows.begin; i < rows.end; ++i) std::fill_n(m.at(i), columns, T(0));
}

template <class T>
class HeadBackward {
 public:
  HeadBackward(const Sizes& sizes, const Attention& o)
      : sizes_(sizes),
        o_(o),
        packed_q_(kQueries * sizes.width),
        packed_dy_(kQueries * sizes.value_width),
        packed_k_(kKeys, sizes.width),
        packed_v_(kKeys, sizes.value_width),
        weights_(kKeys * kRow),
        gradients_(kKeys * kRow) {}

  // The part of the gradients that lies in the given queries (dq) and keys (dk, dv), both cut at
  // multiples of the blocks.
  void run(int64_t head, const HeadOperands<T>& x, View mask, Range queries, Range keys) {
    const Mask<T> hidden(mask, head);
    const WeightDropout<T> dropout(o_.dropout, sizes_, head);
    zero_rows(x.dq, queries, sizes_.width);
    zero_rows(x.dk, keys, sizes_.width);
    zero_rows(x.dv, keys, sizes_.value_width);
    for (first_ = queries.begin; first_ < queries.end; first_ += kQueries) {
      count_ = std::min(kQueries, queries.end - first_);
      const int64_t seen =
          std::min(keys.end, visible_keys(o_.causal, first_ + count_ - 1, 0, sizes_.keys));
      if (keys.begin >= seen) continue;
      prepare(x);
      for (int64_t key = keys.begin; key < seen; key += kKeys) {
        const int64_t n = std::min(kKeys, seen - key);
        packed_k_.pack({x.k.at(key), x.k.row}, n);
        packed_v_.pack({x.v.at(key), x.v.row}, n);
        for (int64_t i = 0; i < count_; i += kPanel<T>) panel(i, key, n, hidden, dropout);
        add_to_keys(x, key, n);
        add_to_queries(x, key, n);
      }
    }
  }

 private:
  // Packs the queries and their output gradients; sum of dy y per query.
  void prepare(const HeadOperands<T>& x) {
    pack_queries<T>({x.q.at(first_), x.q.row}, count_, sizes_.width, T(o_.scale), packed_q_.data());
    pack_queries<T>({x.dy.at(first_), x.dy.row}, count_, sizes_.value_width, T(1),
                    packed_dy_.data());
    std::fill_n(dots_, kQueries, T(0));
    std::fill_n(log_sums_, kQueries, std::numeric_limits<T>::infinity());
    for (int64_t i = 0; i < count_; ++i) {
      dots_[i] = T(sum_row(
          sizes_.value_width, T(0),
          [](const Packet<T>& a, const Packet<T>& b) { return packet::pmul(a, b); },
          x.dy.at(first_ + i), x.y.at(first_ + i)));
      log_sums_[i] = x.log_sums[first_ + i];
    }
  }

  // d(p) into weights_, scale ds into gradients_, for the panel that begins at query first_ + i.
  void panel(int64_t i, int64_t key, int64_t keys, const Mask<T>& hidden,
             const WeightDropout<T>& dropout) {
    const int64_t queries = std::min(kPanel<T>, count_ - i), query = first_ + i;
    const int64_t seen = visible_keys(o_.causal, query + queries - 1, key, keys);
    T *weight = weights_.data() + i, *gradient = gradients_.data() + i;
    packed_k_.times(seen, packed_q_.data() + i * sizes_.width, kPanel<T>, {weight, kRow});
    packed_v_.times(seen, packed_dy_.data() + i * sizes_.value_width, kPanel<T>, {gradient, kRow});
    hidden.add_to(weight, kRow, query, queries, key, seen);
    if (o_.causal) hide_later_keys(weight, kRow, query, key, seen);
    if (dropout.active()) {
      for (int64_t s = 0; s < seen; ++s) {
        dropout.factors(query, key + s, factors_);
        derivative<true>(i, s);
      }
    } else {
      for (int64_t s = 0; s < seen; ++s) derivative<false>(i, s);
    }
    for (int64_t s = seen; s < keys; ++s) {
      std::fill_n(weight + s * kRow, kPanel<T>, T(0));
      std::fill_n(gradient + s * kRow, kPanel<T>, T(0));
    }
  }

  // Score and dp of one key with a panel of queries -> d(p) and scale ds.
  template <bool kDropout>
  void derivative(int64_t i, int64_t s) {
    const Packet<T> zero = packet::set(T(0)), scale = packet::set(T(o_.scale));
    for (int64_t x = 0; x < kPanel<T>; x += kLanes<T>) {
      T* weight = weights_.data() + s * kRow + i + x;
      T* gradient = gradients_.data() + s * kRow + i + x;
      const Packet<T> p =
          packet::exp<T>(packet::psub(packet::load(weight), packet::load(log_sums_ + i + x)));
      Packet<T> kept = p, dp = packet::load(gradient);
      if constexpr (kDropout) {
        const Packet<T> factor = packet::load(factors_ + x);
        const Packet<T> dropped = Eigen::internal::pcmp_eq(factor, zero);
        kept = packet::pselect(dropped, zero, packet::pmul(p, factor));
        dp = packet::pselect(dropped, zero, packet::pmul(dp, factor));
      }
      const Packet<T> ds =
          packet::pmul(packet::pmul(p, scale), packet::psub(dp, packet::load(dots_ + i + x)));
      packet::store(weight, kept);
      // A weight of 0 passes nothing on, whatever stands on the other side.
      packet::store(gradient, packet::pselect(Eigen::internal::pcmp_eq(p, zero), zero, ds));
    }
  }

  // dv += d(p)^T dy and dk += ds^T q: tiles of keys, the queries that see them inside.
  void add_to_keys(const HeadOperands<T>& x, int64_t key, int64_t keys) {
    constexpr int64_t kRows = gemm::kTileRows<T>;
    for (int64_t s = 0; s < keys; s += kRows) {
      const int64_t rows = std::min(kRows, keys - s);
      const int64_t from = o_.causal ? std::max<int64_t>(0, key + s - first_) : 0;
      const int64_t depth = count_ - from, at = s * kRow + from;
      if (x.dv.data) {
        block_product<T>(rows, sizes_.value_width, depth, {weights_.data() + at, kRow, 1},
                         {x.dy.at(first_ + from), x.dy.row}, {x.dv.at(key + s), x.dv.row}, true);
      }
      if (x.dk.data) {
        block_product<T>(rows, sizes_.width, depth, {gradients_.data() + at, kRow, 1},
                         {x.q.at(first_ + from), x.q.row}, {x.dk.at(key + s), x.dk.row}, true);
      }
    }
  }

  // dq += ds k: tiles of queries, the keys that they see inside.
  void add_to_queries(const HeadOperands<T>& x, int64_t key, int64_t keys) {
    if (!x.dq.data) return;
    constexpr int64_t kRows = gemm::kTileRows<T>;
    for (int64_t i = 0; i < count_; i += kRows) {
      const int64_t rows = std::min(kRows, count_ - i);
      const int64_t depth = visible_keys(o_.causal, first_ + i + rows - 1, key, keys);
      if (depth == 0) continue;
      block_product<T>(rows, sizes_.width, depth, {gradients_.data() + i, 1, kRow},
                       {x.k.at(key), x.k.row}, {x.dq.at(first_ + i), x.dq.row}, true);
    }
  }

  static constexpr int64_t kRow = score_row<T>(kQueries);
  const Sizes& sizes_;
  const Attention& o_;
  int64_t first_ = 0, count_ = 0;
  Scratch<T> packed_q_, packed_dy_;
  PackedRows<T> packed_k_, packed_v_;
  Scratch<T> weights_, gradients_;
  alignas(64) T dots_[kQueries];
  alignas(64) T log_sums_[kQueries];
  alignas(64) T factors_[kPanel<T>];
};

template <class T>
class AllHeads {
 public:
  AllHeads(const AttentionSaved& s, View dy, MutView dq, MutView dk, MutView dv)
      : s_(s), dy_(dy), dq_(dq), dk_(dk), dv_(dv) {}
  HeadOperands<T> operands(int64_t head, int64_t queries) const {
    HeadOperands<T> x{matrix(s_.q, head),
                      matrix(s_.k, head),
                      matrix(s_.v, head),
                      matrix(s_.y, head),
                      matrix(dy_, head),
                      s_.log_sums.as<T>() + head * queries,
                      {},
                      {},
                      {}};
    if (dq_.data) x.dq = HeadsOf<void*>(dq_).matrix<T>(head);
    if (dk_.data) x.dk = HeadsOf<void*>(dk_).matrix<T>(head);
    if (dv_.data) x.dv = HeadsOf<void*>(dv_).matrix<T>(head);
    return x;
  }

 private:
  static Matrix<const T> matrix(View view, int64_t head) {
    return HeadsOf<const void*>(view).template matrix<const T>(head);
  }
  const AttentionSaved& s_;
  const View dy_;
  const MutView dq_, dk_, dv_;
};

}  // namespace
}  // namespace attention_detail

void attention_backward(Cpu, const AttentionSaved& saved, View dy, MutView dq, MutView dk,
                        MutView dv, Attention o) {
  using namespace attention_detail;
  const Sizes sizes(saved.q, saved.k, saved.v);
  const Range queries{0, sizes.queries}, keys{0, sizes.keys};
  visit_float(saved.q.dtype, [&]<class T>() {
    const AllHeads<T> heads(saved, dy, dq, dk, dv);
    if (sizes.heads >= num_threads()) {
      parallel_for(sizes.heads, 1, [&](int64_t begin, int64_t end) {
        HeadBackward<T> work(sizes, o);
        for (int64_t head = begin; head < end; ++head)
          work.run(head, heads.operands(head, sizes.queries), saved.mask, queries, keys);
      });
      return;
    }
    const int64_t query_blocks = (sizes.queries + kQueries - 1) / kQueries;
    const int64_t key_blocks = (sizes.keys + kKeys - 1) / kKeys;
    parallel_for(sizes.heads * (query_blocks + key_blocks), 1, [&](int64_t begin, int64_t end) {
      HeadBackward<T> work(sizes, o);
      for (int64_t item = begin; item < end; ++item) {
        const int64_t head = item % sizes.heads, block = item / sizes.heads;
        HeadOperands<T> x = heads.operands(head, sizes.queries);
        if (block < query_blocks) {
          x.dk.data = x.dv.data = nullptr;
          if (!x.dq.data) continue;
          const int64_t from = block * kQueries;
          work.run(head, x, saved.mask, {from, std::min(from + kQueries, sizes.queries)}, keys);
        } else {
          x.dq.data = nullptr;
          if (!x.dk.data && !x.dv.data) continue;
          const int64_t from = (block - query_blocks) * kKeys;
          work.run(head, x, saved.mask, queries, {from, std::min(from + kKeys, sizes.keys)});
        }
      }
    });
  });
}

}  // namespace tg::kernels
