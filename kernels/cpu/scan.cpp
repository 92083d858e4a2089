// What goes along one dimension in order: running sums, and the first place of a value.
#include <algorithm>
#include <array>

#include "tapegrad/core/parallel.h"
#include "tapegrad/kernels/cpu/grain.h"
#include "tapegrad/kernels/reduce.h"
#include "tapegrad/kernels/walk.h"

namespace tg::kernels {

namespace {

constexpr int64_t kTile = 64;  // lines that are followed side by side

// All dimensions but one, as a walk over the operands' lines; the line itself apart.
template <size_t kCount>
Walk lines_of(const std::array<Layout, kCount>& operands, int dim) {
  std::array<Shape, kCount> shapes;
  std::array<Layout, kCount> flat = operands;
  for (size_t k = 0; k < kCount; ++k) {
    shapes[k] = *operands[k].shape;
    shapes[k][dim] = 1;
    flat[k].shape = &shapes[k];
  }
  return plan_walk(flat);
}

// The lines of a walk, up to kTile neighbours at a time: fn(offsets, count, steps).
template <size_t kCount, class F>
void each_tile(const Walk& w, int64_t length, F fn) {
  int64_t grain = std::max<int64_t>(kTile, kElementGrain / std::max<int64_t>(length, 1));
  parallel_for(w.numel, grain, [&](int64_t begin, int64_t end) {
    Position<int(kCount)> at(w, begin);
    for (int64_t i = begin; i < end;) {
      int64_t n = std::min({at.run(), end - i, kTile});
      fn(at.offset, n);
      at.advance(n);
      i += n;
    }
  });
}

template <class T>
auto value_of(T v) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
    return float(v);
  else
    return v;
}
template <class T>
auto sum_of(T v) {  // the type in which values of type T are added
  using V = decltype(value_of(v));
  if constexpr (std::is_floating_point_v<V>)
    return double(value_of(v));
  else
    return int64_t(v);
}
template <class To, class From>
To rounded(From v) {
  if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>)
    return To(float(v));
  else
    return To(v);
}

// Integers wrap around instead of being undefined.
inline double plus(double a, double b) { return a + b; }
inline int64_t plus(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }

template <class T, class Y>
void cumsum_typed(const View& x, const MutView& y, int dim) {
  Walk w = lines_of(std::array{layout_of(y), layout_of(x)}, dim);
  int64_t length = x.size(dim), sx = x.stride(dim), sy = y.stride(dim);
  using Total = decltype(sum_of(T()));
  each_tile<2>(w, length, [&](const int64_t* offset, int64_t n) {
    const T* from = reinterpret_cast<const T*>(x.as<char>() + offset[1]);
    Y* to = reinterpret_cast<Y*>(y.as<char>() + offset[0]);
    int64_t x_step = w.inner_step(1) / int64_t(sizeof(T));
    int64_t y_step = w.inner_step(0) / int64_t(sizeof(Y));
    if (sx == 1) {  // line by line
      for (int64_t j = 0; j < n; ++j) {
        Total total = 0;
        for (int64_t k = 0; k < length; ++k) {
          total = plus(total, sum_of(from[j * x_step + k]));
          to[j * y_step + k * sy] = rounded<Y>(total);
        }
      }
      return;
    }
    Total total[kTile] = {};
    for (int64_t k = 0; k < length; ++k)
      for (int64_t j = 0; j < n; ++j) {
        total[j] = plus(total[j], sum_of(from[j * x_step + k * sx]));
        to[j * y_step + k * sy] = rounded<Y>(total[j]);
      }
  });
}

template <class T>
void find_typed(const View& x, const View& value, const MutView& index, int dim) {
  Walk w = lines_of(std::array{layout_of(x), layout_of(value), layout_of(index)}, dim);
  int64_t length = x.size(dim), sx = x.stride(dim);
  each_tile<3>(w, length, [&](const int64_t* offset, int64_t n) {
    int64_t found[kTile], left = n;
    std::fill_n(found, n, -1);
    for (int64_t k = 0; k < length && left > 0; ++k)
      for (int64_t j = 0; j < n; ++j) {
        if (found[j] >= 0) continue;
        const char* from = x.as<char>() + offset[0] + j * w.inner_step(0);
        const char* wanted = value.as<char>() + offset[1] + j * w.inner_step(1);
        auto v = value_of(reinterpret_cast<const T*>(from)[k * sx]);
        auto u = value_of(*reinterpret_cast<const T*>(wanted));
        if (v == u || (v != v && u != u)) {
          found[j] = k;
          --left;
        }
      }
    for (int64_t j = 0; j < n; ++j)
      *reinterpret_cast<int64_t*>(index.as<char>() + offset[2] + j * w.inner_step(2)) = found[j];
  });
}

}  // namespace

void cumsum(Cpu, View x, MutView y, int dim) {
  if (y.numel == 0) return;
  visit_all(x.dtype, [&]<class T>() {
    if constexpr (std::is_integral_v<T>)
      cumsum_typed<T, int64_t>(x, y, dim);
    else
      cumsum_typed<T, T>(x, y, dim);
  });
}

void find_first(Cpu, View x, View value, MutView index, int dim) {
  if (index.numel == 0) return;
  visit_all(x.dtype, [&]<class T>() { find_typed<T>(x, value, index, dim); });
}

}  // namespace tg::kernels
