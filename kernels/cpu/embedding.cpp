#include "tapegrad/kernels/embedding.h"

#include <algorithm>
#include <cstring>

#include "tapegrad/kernels/cpu/row_math.h"
#include "tapegrad/kernels/cpu/rows.h"

namespace tg::kernels {
namespace {

// Positions sorted by their index, equal ones in order: those of row r are
// order[start[r] .. start[r + 1]).
struct ByRow {
  ByRow(const int64_t* indices, int64_t n, int64_t rows) : start(rows + 2), order(n) {
    std::fill_n(start.data(), rows + 2, int64_t{0});
    for (int64_t i = 0; i < n; ++i) ++start[indices[i] + 2];
    for (int64_t r = 2; r < rows + 2; ++r) start[r] += start[r - 1];
    // start[r + 1] is now where row r begins; filling moves it to where row r ends.
    for (int64_t i = 0; i < n; ++i) order[start[indices[i] + 1]++] = i;
  }
  Scratch<int64_t> start, order;
};

template <class W, class T>
void add_row(int64_t n, const T* from, W* sum) {
  if constexpr (std::is_same_v<T, W>) {
    map_row(
        n, W(0), sum, [](const Packet<W>& a, const Packet<W>& b) { return packet::padd(a, b); },
        sum, from);
  } else {
    for (int64_t i = 0; i < n; ++i) sum[i] += static_cast<W>(from[i]);
  }
}

}  // namespace

void embedding(Cpu, View indices, View weight, MutView y) {
  const int64_t count = weight.size(0), bytes = weight.size(1) * int64_t(size_of(weight.dtype));
  const int64_t* at = indices.as<int64_t>();
  for (int64_t i = 0; i < indices.numel; ++i) {
    check<IndexError>(at[i] >= 0 && at[i] < count, "index", at[i], "at position", i,
                      "is outside of [0,", count, ")");
  }
  if (bytes == 0) return;
  const char* from = weight.as<char>();
  char* to = y.as<char>();
  parallel_for(indices.numel, row_grain(weight.size(1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(to + i * bytes, from + at[i] * bytes, static_cast<size_t>(bytes));
    }
  });
}

void embedding_backward(Cpu, View indices, View dy, MutView dweight, int64_t padding) {
  const int64_t rows = dweight.size(0), n = dweight.size(1);
  const ByRow by_row(indices.as<int64_t>(), indices.numel, rows);
  visit_any_float(dy.dtype, [&]<class T>() {
    using W = Wide<T>;
    parallel_for(rows, row_grain(n), [&](int64_t begin, int64_t end) {
      Scratch<W> buffer(std::is_same_v<T, W> ? 0 : n);
      for (int64_t row = begin; row < end; ++row) {
        T* to = dweight.as<T>() + row * n;
        W* sum = buffer.data();
        if constexpr (std::is_same_v<T, W>) sum = to;
        std::fill_n(sum, n, W(0));
        if (row != padding) {
          for (int64_t k = by_row.start[row]; k < by_row.start[row + 1]; ++k) {
            add_row(n, dy.as<T>() + by_row.order[k] * n, sum);
          }
        }
        if constexpr (!std::is_same_v<T, W>)
          for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(sum[i]);
      }
    });
  });
}

}  // namespace tg::kernels
