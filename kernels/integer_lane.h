// An integer with the functors' vocabulary: arithmetic wraps around instead of being undefined.
#pragma once
#include <cstdint>
#include <type_traits>

#include "tapegrad/core/host_device.h"

namespace tg::kernels {

template <class T>
struct IntegerLane {
  T v;
  using Wide = std::make_unsigned_t<T>;
  IntegerLane() = default;
  template <class N>
  requires std::is_integral_v<N> TG_HD IntegerLane(N value) : v(T(value)) {}
  // A bound of clamp, say: beyond the range it is the range's end.
  TG_HD IntegerLane(double value) {
    constexpr double above = double(T(1) << (8 * sizeof(T) - 2)) * 2;
    v = value < -above   ? T(-above)
        : value < above  ? T(value)
        : value >= above ? T(~(Wide(1) << (8 * sizeof(T) - 1)))
                         : T(0);
  }

  friend TG_HD IntegerLane operator+(IntegerLane a, IntegerLane b) {
    return T(Wide(a.v) + Wide(b.v));
  }
  friend TG_HD IntegerLane operator-(IntegerLane a, IntegerLane b) {
    return T(Wide(a.v) - Wide(b.v));
  }
  friend TG_HD IntegerLane operator*(IntegerLane a, IntegerLane b) {
    return T(Wide(a.v) * Wide(b.v));
  }
  friend TG_HD IntegerLane operator-(IntegerLane a) { return T(Wide(0) - Wide(a.v)); }
  friend TG_HD bool operator<(IntegerLane a, IntegerLane b) { return a.v < b.v; }
  friend TG_HD bool operator<=(IntegerLane a, IntegerLane b) { return a.v <= b.v; }
  friend TG_HD bool operator>(IntegerLane a, IntegerLane b) { return a.v > b.v; }
  friend TG_HD bool operator>=(IntegerLane a, IntegerLane b) { return a.v >= b.v; }
  friend TG_HD bool operator==(IntegerLane a, IntegerLane b) { return a.v == b.v; }
  friend TG_HD bool operator!=(IntegerLane a, IntegerLane b) { return a.v != b.v; }
  friend TG_HD IntegerLane where(bool c, IntegerLane a, IntegerLane b) { return c ? a : b; }
  friend TG_HD IntegerLane abs(IntegerLane a) { return a.v < 0 ? -a : a; }
  friend TG_HD IntegerLane sign(IntegerLane a) { return T((a.v > 0) - (a.v < 0)); }
  friend TG_HD IntegerLane clamp(IntegerLane x, IntegerLane low, IntegerLane high) {
    IntegerLane raised = x < low ? low : x;
    return raised > high ? high : raised;
  }
  // By squaring. A negative exponent gives 1 / a^-b cut to an integer: 0 unless a is 1 or -1.
  friend TG_HD IntegerLane pow(IntegerLane a, IntegerLane b) {
    if (b.v < 0) {
      if (a.v == 1) return T(1);
      return a.v == -1 ? T(b.v % 2 ? -1 : 1) : T(0);
    }
    IntegerLane y(1);
    for (T e = b.v; e > 0; e /= 2, a = a * a)
      if (e % 2) y = y * a;
    return y;
  }
};

}  // namespace tg::kernels
