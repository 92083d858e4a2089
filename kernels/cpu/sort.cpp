// Every value becomes an unsigned key that sorts like it (inverted for a falling order). A key and
// its index together are unique, so any sort of the pairs is stable: std::sort for short lines, a
// radix sort, which is stable by itself, for long ones.
#include "tapegrad/kernels/sort.h"

#include <algorithm>
#include <array>
#include <utility>

#include "tapegrad/core/parallel.h"
#include "tapegrad/kernels/cpu/scratch.h"
#include "tapegrad/kernels/sort_key.h"
#include "tapegrad/kernels/walk.h"

namespace tg::kernels {
namespace {

template <class Key>
struct Item {
  Key key;
  int64_t index;
  bool operator<(const Item& o) const { return key < o.key || (key == o.key && index < o.index); }
};

constexpr int64_t kRadixFrom = 2048;

// One pass per byte of the key, from the lowest; a byte that is the same everywhere is skipped.
template <class Key>
void radix_sort(Item<Key>* items, Item<Key>* spare, int64_t n) {
  Item<Key>* from = items;
  Item<Key>* to = spare;
  for (size_t byte = 0; byte < sizeof(Key); ++byte) {
    auto digit = [byte](const Item<Key>& item) { return uint8_t(item.key >> (byte * 8)); };
    std::array<int64_t, 256> starts{};
    for (int64_t i = 0; i < n; ++i) ++starts[digit(from[i])];
    if (starts[digit(from[0])] == n) continue;
    int64_t sum = 0;
    for (int64_t& start : starts) sum += std::exchange(start, sum);
    for (int64_t i = 0; i < n; ++i) to[starts[digit(from[i])]++] = from[i];
    std::swap(from, to);
  }
  if (from != items) std::copy(from, from + n, items);
}

// For each line of x along dim: loads its items, lets `arrange` bring the first `kept` in order,
// and writes them.
template <class T, class Arrange>
void order_lines(const View& x, int dim, bool falling, const MutView& values,
                 const MutView& indices, Arrange arrange) {
  using Key = UInt<sizeof(T)>;
  int64_t n = x.size(dim), kept = values.size(dim);
  if (values.numel == 0) return;
  Shape shape = x.shape(), sx = x.strides(), sv = values.strides(), si = indices.strides();
  for (Shape* s : {&shape, &sx, &sv, &si}) s->erase(dim);
  int64_t bytes = sizeof(T);
  Layout layouts[] = {{&shape, &sv, bytes}, {&shape, &sx, bytes}, {&shape, &si, 8}};
  Walk w = plan_walk(layouts);
  int64_t x_step = x.stride(dim), v_step = values.stride(dim), i_step = indices.stride(dim);
  int64_t grain = std::max<int64_t>(1, 4096 / n);
  parallel_for(w.numel, grain, [&](int64_t begin, int64_t end) {
    Scratch<Item<Key>> items(n), spare(n >= kRadixFrom ? n : 0);
    Position<3> at(w, begin);
    for (int64_t line = begin; line < end; ++line) {
      auto* pv = reinterpret_cast<T*>(static_cast<char*>(values.data) + at.offset[0]);
      auto* px = reinterpret_cast<const T*>(static_cast<const char*>(x.data) + at.offset[1]);
      auto* pi = reinterpret_cast<int64_t*>(static_cast<char*>(indices.data) + at.offset[2]);
      for (int64_t i = 0; i < n; ++i) {
        Key key = key_of(px[i * x_step]);
        items[i] = {falling ? Key(~key) : key, i};
      }
      arrange(items.data(), spare.data(), n, kept);
      for (int64_t i = 0; i < kept; ++i) {
        pi[i * i_step] = items[i].index;
        pv[i * v_step] = px[items[i].index * x_step];
      }
      if (line + 1 < end) at.advance(1);
    }
  });
}

// For rank 0: one line of one element.
struct AsLine {
  Shape one = {1};
  template <class V>
  V operator()(V v) const {
    if (v.rank() == 0) v.shape_ptr = v.stride_ptr = &one;
    return v;
  }
};

}  // namespace

void sort(Cpu, View x, int dim, bool descending, MutView values, MutView indices) {
  AsLine line;
  visit_all(x.dtype, [&]<class T>() {
    order_lines<T>(line(x), dim, descending, line(values), line(indices),
                   [](auto* items, auto* spare, int64_t n, int64_t) {
                     if (n >= kRadixFrom)
                       radix_sort(items, spare, n);
                     else
                       std::sort(items, items + n);
                   });
  });
}

void topk(Cpu, View x, int dim, bool largest, MutView values, MutView indices) {
  AsLine line;
  visit_all(x.dtype, [&]<class T>() {
    order_lines<T>(line(x), dim, largest, line(values), line(indices),
                   [](auto* items, auto*, int64_t n, int64_t k) {
                     if (k < n) std::nth_element(items, items + k, items + n);
                     std::sort(items, items + k);
                   });
  });
}

}  // namespace tg::kernels
