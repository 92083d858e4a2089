// Operands seen as rows along one dimension, whatever their strides: a kernel is written for
// contiguous rows of float or double, and this brings the rows to it.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "tapegrad/core/parallel.h"
#include "tapegrad/core/view.h"
#include "tapegrad/kernels/cpu/scratch.h"
#include "tapegrad/kernels/dispatch.h"

namespace tg::kernels {

// What a type is computed in: f16 and bf16 in float.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Where the rows of K operands of one shape lie. Rows are counted in the logical order of the
// remaining dimensions.
template <size_t K>
class RowIndex {
 public:
  using Offsets = std::array<int64_t, K>;

  RowIndex(const Shape& shape, const std::array<const Shape*, K>& strides, int64_t dim) {
    length = shape.rank() > 0 ? shape[int(dim)] : 1;
    count = 1;
    for (size_t k = 0; k < K; ++k) step[k] = shape.rank() > 0 ? (*strides[k])[int(dim)] : 1;
    for (int d = 0; d < shape.rank(); ++d) {
      if (d == dim || shape[d] == 1) continue;
      count *= shape[d];
      Offsets s;
      for (size_t k = 0; k < K; ++k) s[k] = (*strides[k])[d];
      if (rank_ > 0 && joins(s, shape[d])) {
        sizes_[size_t(rank_ - 1)] *= shape[d];
        strides_[size_t(rank_ - 1)] = s;
        continue;
      }
      sizes_[size_t(rank_)] = shape[d];
      strides_[size_t(rank_++)] = s;
    }
  }

  Offsets offsets(int64_t row) const {
    Offsets o{};
    for (int d = rank_ - 1; d >= 0; --d) {
      const int64_t outer = d > 0 ? row / sizes_[size_t(d)] : 0;
      const int64_t here = row - outer * sizes_[size_t(d)];
      for (size_t k = 0; k < K; ++k) o[k] += here * strides_[size_t(d)][k];
      row = outer;
    }
    return o;
  }

  int64_t count = 0, length = 0;
  std::array<int64_t, K> step{};  // distance between the values of a row

 private:
  // True if the dimension before continues through this one in every operand.
  bool joins(const Offsets& s, int64_t size) const {
    for (size_t k = 0; k < K; ++k)
      if (strides_[size_t(rank_ - 1)][k] != s[k] * size) return false;
    return true;
  }
  int rank_ = 0;
  std::array<int64_t, kMaxRank> sizes_{};
  std::array<Offsets, kMaxRank> strides_{};
};

// How many rows one thread takes at a time.
inline int64_t row_grain(int64_t length) {
  return std::max<int64_t>(1, (16 << 10) / std::max<int64_t>(1, length));
}

// fn(row, in, out) for each row: `in` the K input rows, `out` where the result goes, all contiguous
// and of type Wide<T>. Rows that already lie so are passed where they are; others are copied, up to
// 16 neighbours at a time so that lines of memory are used whole. out may be null.
template <class T, size_t K, class F>
void for_rows(const RowIndex<K + 1>& rows, const std::array<const T*, K>& in, T* out, F&& fn) {
  using W = Wide<T>;
  using In = std::array<const W*, K>;
  const int64_t n = rows.length;
  const bool in_place =
      std::is_same_v<T, W> && (n <= 1 || std::all_of(rows.step.begin(), rows.step.end(),
                                                     [](int64_t step) { return step == 1; }));
  parallel_for(rows.count, row_grain(n), [&](int64_t begin, int64_t end) {
    if constexpr (std::is_same_v<T, W>) {
      if (in_place) {
        for (int64_t row = begin; row < end; ++row) {
          const auto at = rows.offsets(row);
          In from;
          for (size_t k = 0; k < K; ++k) from[k] = in[k] + at[k];
          fn(row, from, out ? out + at[K] : out);
        }
        return;
      }
    }
    constexpr int64_t kMost = 16;
    const int64_t group = std::clamp<int64_t>(row_grain(n), 1, kMost);
    Scratch<W> buffer(group * n * int64_t{K + 1});
    std::array<int64_t, K + 1> at[kMost];
    for (int64_t row = begin; row < end; row += group) {
      const int64_t count = std::min(group, end - row);
      for (int64_t r = 0; r < count; ++r) at[r] = rows.offsets(row + r);
      for (size_t k = 0; k < K; ++k) {
        W* to = buffer.data() + int64_t(k) * group * n;
        for (int64_t i = 0; i < n; ++i) {
          const T* from = in[k] + i * rows.step[k];
          for (int64_t r = 0; r < count; ++r) to[r * n + i] = static_cast<W>(from[at[r][k]]);
        }
      }
      W* result = buffer.data() + int64_t{K} * group * n;
      for (int64_t r = 0; r < count; ++r) {
        In from;
        for (size_t k = 0; k < K; ++k) from[k] = buffer.data() + (int64_t(k) * group + r) * n;
        fn(row + r, from, result + r * n);
      }
      for (int64_t i = 0; out && i < n; ++i) {
        T* to = out + i * rows.step[K];
        for (int64_t r = 0; r < count; ++r) to[at[r][K]] = static_cast<T>(result[r * n + i]);
      }
    }
  });
}

}  // namespace tg::kernels
