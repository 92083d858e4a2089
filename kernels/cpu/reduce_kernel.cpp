#include "tapegrad/kernels/cpu/reduce_kernel.h"

#include <limits>
#include <type_traits>

#include "tapegrad/kernels/cpu/packet.h"
#include "tapegrad/kernels/integer_lane.h"

namespace tg::kernels {

namespace {

template <class S>
constexpr S lowest() {
  if constexpr (std::is_floating_point_v<S>) return -std::numeric_limits<S>::infinity();
  return std::numeric_limits<S>::min();
}
template <class S>
constexpr S highest() {
  if constexpr (std::is_floating_point_v<S>) return std::numeric_limits<S>::infinity();
  return std::numeric_limits<S>::max();
}

// How elements come in (map) and totals meet (join), on packets, integers and plain numbers.
struct Sum {
  template <class S>
  static constexpr S start() {
    return S(0);
  }
  template <class V>
  static V map(V x) {
    return x;
  }
  template <class V>
  static V join(V a, V b) {
    return a + b;
  }
};
struct SumOfSquares : Sum {
  template <class V>
  static V map(V x) {
    return x * x;
  }
};
struct SumOfSizes : Sum {
  template <class V>
  static V map(V x) {
    return where(x < V(0), -x, x);
  }
};
struct Product {
  template <class S>
  static constexpr S start() {
    return S(1);
  }
  template <class V>
  static V map(V x) {
    return x;
  }
  template <class V>
  static V join(V a, V b) {
    return a * b;
  }
};
struct Largest {
  template <class S>
  static constexpr S start() {
    return lowest<S>();
  }
  template <class V>
  static V map(V x) {
    return x;
  }
  template <class V>
  static V join(V a, V b) {  // a NaN in a stays, one in b fails the comparison and is taken
    return where(a != a, a, where(b <= a, a, b));
  }
};
struct Smallest {
  template <class S>
  static constexpr S start() {
    return highest<S>();
  }
  template <class V>
  static V map(V x) {
    return x;
  }
  template <class V>
  static V join(V a, V b) {
    return where(a != a, a, where(b >= a, a, b));
  }
};

template <class T>
T where(bool c, T a, T b) {
  return c ? a : b;
}

// A number with the same words as a packet, one wide.
template <class S>
struct Single {
  static constexpr int kWidth = 1;
  std::conditional_t<std::is_floating_point_v<S>, S, IntegerLane<S>> v;
  Single() = default;
  Single(S x) : v(x) {}
  static Single load(const S* p) { return Single(*p); }
  static Single load(const S* p, int64_t) { return Single(*p); }
  void store(S* p, int64_t = 1) const {
    if constexpr (std::is_floating_point_v<S>)
      *p = v;
    else
      *p = v.v;
  }
  friend Single operator+(Single a, Single b) { return wrap(a.v + b.v); }
  friend Single operator*(Single a, Single b) { return wrap(a.v * b.v); }
  friend Single operator-(Single a) { return wrap(-a.v); }
  friend bool operator<(Single a, Single b) { return a.v < b.v; }
  friend bool operator<=(Single a, Single b) { return a.v <= b.v; }
  friend bool operator>=(Single a, Single b) { return a.v >= b.v; }
  friend bool operator!=(Single a, Single b) { return a.v != b.v; }
  friend Single where(bool c, Single a, Single b) { return c ? a : b; }

 private:
  template <class V>
  static Single wrap(V v) {
    Single s;
    s.v = v;
    return s;
  }
};
template <class S>
using Lanes = std::conditional_t<std::is_floating_point_v<S>, Packet<S>, Single<S>>;
template <class S>
using Wide = std::conditional_t<std::is_floating_point_v<S>, double, int64_t>;

template <class S, class O>
struct Functions {
  using V = Lanes<S>;
  using W = Single<Wide<S>>;
  static constexpr int64_t w = V::kWidth;

  static void join_into(W value, void* wide) {
    auto* to = static_cast<Wide<S>*>(wide);
    O::join(W::load(to), value).store(to);
  }
  static void start_wide(void* wide, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<Wide<S>*>(wide)[i] = O::template start<Wide<S>>();
  }

  // Four packets of partial totals, so that an addition need not wait for the last one; the tail
  // goes into the first, its unused lanes filled with what changes nothing.
  static void run(const void* from, int64_t n, void* wide) {
    const S* x = static_cast<const S*>(from);
    const V start(O::template start<S>());
    V a = start, b = start, c = start, d = start;
    int64_t i = 0;
    for (; i + 4 * w <= n; i += 4 * w) {
      a = O::join(a, O::map(V::load(x + i)));
      b = O::join(b, O::map(V::load(x + i + w)));
      c = O::join(c, O::map(V::load(x + i + 2 * w)));
      d = O::join(d, O::map(V::load(x + i + 3 * w)));
    }
    for (; i + w <= n; i += w) a = O::join(a, O::map(V::load(x + i)));
    if (i < n) {
      S lanes[w];
      start.store(lanes);
      S mapped[w];
      O::map(V::load(x + i, n - i)).store(mapped);
      for (int64_t k = 0; k < n - i; ++k) lanes[k] = mapped[k];
      b = O::join(b, V::load(lanes));
    }
    S lanes[w];
    O::join(O::join(a, b), O::join(c, d)).store(lanes);
    W total = W(Wide<S>(lanes[0]));
    for (int64_t k = 1; k < w; ++k) total = O::join(total, W(Wide<S>(lanes[k])));
    join_into(total, wide);
  }

  static void start_rows(void* narrow, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<S*>(narrow)[i] = O::template start<S>();
  }
  template <int kRows>
  static void add_rows(const void* const* from, void* narrow, int64_t n) {
    const S* x[kRows];
    for (int r = 0; r < kRows; ++r) x[r] = static_cast<const S*>(from[r]);
    S* y = static_cast<S*>(narrow);
    int64_t i = 0;
    for (; i + w <= n; i += w) {
      V total = V::load(y + i);
      for (int r = 0; r < kRows; ++r) total = O::join(total, O::map(V::load(x[r] + i)));
      total.store(y + i);
    }
    if (i < n) {
      int64_t left = n - i;
      V total = V::load(y + i, left);
      for (int r = 0; r < kRows; ++r) total = O::join(total, O::map(V::load(x[r] + i, left)));
      total.store(y + i, left);
    }
  }
  static void rows(const void* const* from, int count, void* narrow, int64_t n) {
    if (count == kRowsAtOnce) return add_rows<kRowsAtOnce>(from, narrow, n);
    add_rows<1>(from, narrow, n);
  }
  static void merge(const void* narrow, void* wide, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      join_into(W(Wide<S>(static_cast<const S*>(narrow)[i])), static_cast<Wide<S>*>(wide) + i);
  }
  static void combine(const void* from, void* wide, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      join_into(W(static_cast<const Wide<S>*>(from)[i]), static_cast<Wide<S>*>(wide) + i);
  }
  static ReduceKernel kernel() {
    return {dtype_of<S>(), dtype_of<Wide<S>>(), start_wide, run, start_rows, rows, merge, combine};
  }
};

template <class S>
ReduceKernel typed_kernel(Reduce how) {
  switch (how) {
    case Reduce::sum:
      return Functions<S, Sum>::kernel();
    case Reduce::sum_of_squares:
      return Functions<S, SumOfSquares>::kernel();
    case Reduce::sum_of_sizes:
      return Functions<S, SumOfSizes>::kernel();
    case Reduce::prod:
      return Functions<S, Product>::kernel();
    case Reduce::max:
      return Functions<S, Largest>::kernel();
    default:
      return Functions<S, Smallest>::kernel();
  }
}

}  // namespace

ReduceKernel reduce_kernel(Reduce how, DType in) {
  if (in == DType::f64) return typed_kernel<double>(how);
  if (is_floating(in)) return typed_kernel<float>(how);
  return typed_kernel<int64_t>(how);
}

}  // namespace tg::kernels
