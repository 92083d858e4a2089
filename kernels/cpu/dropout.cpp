#include "tapegrad/kernels/dropout.h"

#include <algorithm>

#include "tapegrad/kernels/attention.h"
#include "tapegrad/kernels/cpu/rows.h"
#include "tapegrad/kernels/dropout_draw.h"

namespace tg::kernels {
namespace {

// Elements [begin, end) of the draw; x and y point at element `begin`.
template <class T>
void drop_run(const DropoutDraw& draw, int64_t begin, int64_t end, const T* x, int64_t x_step, T* y,
              int64_t y_step) {
  const Wide<T> factor = Wide<T>(draw.factor());
  for (int64_t i = begin; i < end;) {
    const RandomBlock block = draw.block(uint64_t(i) / 4);
    const int64_t stop = std::min(end, i / 4 * 4 + 4);
    for (; i < stop; ++i, x += x_step, y += y_step) {
      const T kept = static_cast<T>(static_cast<Wide<T>>(*x) * factor);
      *y = draw.keeps(block.word[i % 4]) ? kept : static_cast<T>(0.0f);
    }
  }
}

}  // namespace

void dropout(Cpu, View x, MutView y, Dropout dropout) {
  const DropoutDraw draw(dropout);
  visit_any_float(x.dtype, [&]<class T>() {
    const T* from = x.as<T>();
    T* to = y.as<T>();
    if (x.is_contiguous() && y.is_contiguous()) {
      parallel_for(x.numel, 1 << 12, [&](int64_t begin, int64_t end) {
        drop_run(draw, begin, end, from + begin, 1, to + begin, 1);
      });
      return;
    }
    const RowIndex<2> rows(x.shape(), {&x.strides(), &y.strides()}, x.rank() - 1);
    const int64_t n = rows.length;
    parallel_for(rows.count, row_grain(n), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const auto at = rows.offsets(row);
        drop_run(draw, row * n, (row + 1) * n, from + at[0], rows.step[0], to + at[1],
                 rows.step[1]);
      }
    });
  });
}

void attention_dropout_mask(Cpu, MutView keep, Dropout dropout) {
  const DropoutDraw draw(dropout);
  const int64_t keys = keep.size(keep.rank() - 1), queries = keep.size(keep.rank() - 2);
  const int64_t heads = keep.numel > 0 ? keep.numel / (keys * queries) : 0;
  bool* to = keep.as<bool>();
  parallel_for(heads * keys, row_grain(queries), [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t head = item / keys, key = item % keys;
      for (int64_t query = 0; query < queries; ++query) {
        const int64_t index = attention_index(head, query, key, queries, keys);
        const RandomBlock block = draw.block(uint64_t(index) / 4);
        to[(head * queries + query) * keys + key] = draw.keeps(block.word[index % 4]);
      }
    }
  });
}

}  // namespace tg::kernels
