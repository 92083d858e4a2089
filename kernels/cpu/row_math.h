// Passes over one contiguous row, a packet (one register of values) at a time. The last values of a
// row go through the same packet code: they are loaded into a packet whose other lanes hold a value
// that changes nothing, so a result depends on the row alone and never on where it lies.
#pragma once
#include <Eigen/Core>
#include <algorithm>
#include <cstdint>
#include <limits>

namespace tg::kernels {

template <class T>
using Packet = typename Eigen::internal::packet_traits<T>::type;
template <class T>
constexpr int64_t kLanes = Eigen::internal::unpacket_traits<Packet<T>>::size;

namespace packet {

using Eigen::internal::padd;
using Eigen::internal::pmadd;
using Eigen::internal::pmax;
using Eigen::internal::pmul;
using Eigen::internal::pselect;
using Eigen::internal::psub;

template <class T>
Packet<T> set(T value) {
  return Eigen::internal::pset1<Packet<T>>(value);
}
template <class T>
Packet<T> load(const T* from) {
  return Eigen::internal::ploadu<Packet<T>>(from);
}
template <class T>
void store(T* to, const Packet<T>& value) {
  Eigen::internal::pstoreu<T>(to, value);
}
// The first `count` lanes from memory, the others `pad`.
template <class T>
Packet<T> load_part(const T* from, int64_t count, T pad) {
  alignas(64) T lanes[kLanes<T>];
  for (int64_t i = 0; i < kLanes<T>; ++i) lanes[i] = i < count ? from[i] : pad;
  return load(lanes);
}
template <class T>
void store_part(T* to, const Packet<T>& value, int64_t count) {
  alignas(64) T lanes[kLanes<T>];
  store(lanes, value);
  for (int64_t i = 0; i < count; ++i) to[i] = lanes[i];
}
template <class T>
T sum(const Packet<T>& value) {
  return Eigen::internal::predux(value);
}
template <class T>
T max(const Packet<T>& value) {
  return Eigen::internal::predux_max(value);
}

// e^x for float, to 1.3 units in the last place: x = n log 2 + r with |r| <= log(2) / 2, and
// e^r = 1 + r + r^2 P(r) with the P whose largest relative error is least (3e-9). For those who ask
// for x up to 88 only and for whom e^x below the normal numbers is 0; NaN stays NaN.
template <class P>
[[gnu::always_inline]] inline P exp_float(const P& x) {
  using namespace Eigen::internal;
  using Whole = typename unpacket_traits<P>::integer_packet;
  const auto c = [](float value) { return pset1<P>(value); };
  const P n = pfloor(pmadd(x, c(0x1.715476p+0f), c(0.5f)));
  P r = pmadd(n, c(-0x1.62e4p-1f), x);  // log 2 in two parts, the first of few digits
  r = pmadd(n, c(-0x1.7f7d1cp-20f), r);
  const P square = pmul(r, r);
  const P low = pmadd(c(0x1.55549p-3f), r, c(0x1.fffffcp-2f));
  const P middle = pmadd(c(0x1.123a6cp-7f), r, c(0x1.5558f4p-5f));
  const P high = pmadd(c(0x1.6a2352p-10f), square, middle);
  const P y = pmadd(pmadd(high, square, low), square, padd(r, c(1.0f)));
  const Whole exponent = pcast<P, Whole>(pmin(padd(n, c(127.0f)), c(255.0f)));
  return pmul(y, preinterpret<P>(plogical_shift_left<23>(exponent)));
}

// e^x for x <= 0 or little more. Exactly 0 below the smallest normal result (Eigen's own clamps
// there and returns something tiny, which would let a hidden value through), NaN for NaN.
template <class T>
[[gnu::always_inline]] inline Packet<T> exp(const Packet<T>& x) {
  using namespace Eigen::internal;
  if constexpr (sizeof(T) == 4 && kLanes < T >> 1) {
    return pselect(pcmp_lt(x, set(T(-87.33))), set(T(0)), exp_float(x));
  } else {
    constexpr T kSmallest = sizeof(T) == 4 ? T(-87.33) : T(-708.39);
    const Packet<T> y = pselect(pcmp_lt(x, set(kSmallest)), set(T(0)), pexp(x));
    return pselect(pcmp_eq(x, x), y, x);
  }
}

}  // namespace packet

// How a packet of a row is reached: whole, or the last one with `count` values of it.
struct WholePacket {
  template <class T>
  Packet<T> load(const T* from, T = 0) const {
    return packet::load(from);
  }
  template <class T>
  void store(T* to, const Packet<T>& value) const {
    packet::store(to, value);
  }
};
struct PartPacket {
  int64_t count;
  template <class T>
  Packet<T> load(const T* from, T pad = 0) const {
    return packet::load_part(from, count, pad);
  }
  template <class T>
  void store(T* to, const Packet<T>& value) const {
    packet::store_part(to, value, count);
  }
};
// fn(i, access) for each packet of a row of n values.
template <class T, class F>
void for_packets(int64_t n, F&& fn) {
  int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) fn(i, WholePacket{});
  if (i < n) fn(i, PartPacket{n - i});
}

// y[i] = fn(a[i]...), packets in and out. fn sees `pad` in lanes past the end.
template <class T, class F, class... In>
void map_row(int64_t n, T pad, T* y, F&& fn, const In*... in) {
  int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) packet::store(y + i, fn(packet::load(in + i)...));
  if (i < n) packet::store_part(y + i, fn(packet::load_part(in + i, n - i, pad)...), n - i);
}

// The sum of y[i] = fn(a[i]...), which must be 0 where all arguments are `pad`; y may be null. Four
// chains within blocks of 4096, the blocks in double: the error of a long row does not grow with
// its length.
template <class T, class F, class... In>
double map_sum_row(int64_t n, T pad, T* y, F&& fn, const In*... in) {
  constexpr int64_t kBlock = 4096, kStep = 4 * kLanes<T>;
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, n);
    Packet<T> chain[4] = {packet::set(T(0)), packet::set(T(0)), packet::set(T(0)),
                          packet::set(T(0))};
    int64_t i = begin;
    for (; i + kStep <= end; i += kStep) {
#pragma GCC unroll 4
      for (int c = 0; c < 4; ++c) {
        const Packet<T> v = fn(packet::load(in + i + c * kLanes<T>)...);
        if (y) packet::store(y + i + c * kLanes<T>, v);
        chain[c] = packet::padd(chain[c], v);
      }
    }
    for (int c = 0; i < end; i += kLanes<T>, ++c) {
      const bool whole = i + kLanes<T> <= end;
      const Packet<T> v =
          whole ? fn(packet::load(in + i)...) : fn(packet::load_part(in + i, end - i, pad)...);
      if (y && whole) packet::store(y + i, v);
      if (y && !whole) packet::store_part(y + i, v, end - i);
      chain[c] = packet::padd(chain[c], v);
    }
    total += static_cast<double>(packet::sum<T>(
        packet::padd(packet::padd(chain[0], chain[1]), packet::padd(chain[2], chain[3]))));
  }
  return total;
}
template <class T, class F, class... In>
double sum_row(int64_t n, T pad, F&& fn, const In*... in) {
  return map_sum_row<T>(n, pad, nullptr, fn, in...);
}

// The largest value; -inf for an empty row. A NaN may be passed over.
template <class T>
T max_row(int64_t n, const T* x) {
  constexpr T kLowest = -std::numeric_limits<T>::infinity();
  constexpr int64_t kStep = 4 * kLanes<T>;
  Packet<T> chain[4] = {packet::set(kLowest), packet::set(kLowest), packet::set(kLowest),
                        packet::set(kLowest)};
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      chain[c] = packet::pmax(chain[c], packet::load(x + i + c * kLanes<T>));
    }
  }
  for (int c = 0; i < n; i += kLanes<T>, ++c) {
    chain[c] =
        packet::pmax(chain[c], i + kLanes<T> <= n ? packet::load(x + i)
                                                  : packet::load_part(x + i, n - i, kLowest));
  }
  return packet::max<T>(
      packet::pmax(packet::pmax(chain[0], chain[1]), packet::pmax(chain[2], chain[3])));
}

}  // namespace tg::kernels
