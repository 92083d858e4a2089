// As many floats as fit one register, with the vocabulary of the functors (kernels/scalar_math.h).
// Eigen supplies the instructions for whatever CPU the build is for; what it lacks runs lane by
// lane. Body and tail of a loop go through the same packet code, so an element's bits do not
// depend on where it stands.
#pragma once
#include <Eigen/Core>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <unsupported/Eigen/SpecialFunctions>

#include "tapegrad/kernels/cpu/gemm/simd.h"
#include "tapegrad/kernels/scalar_math.h"

// Eigen's packets are the compiler's vector types, whose alignment gcc drops in template arguments.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"

namespace tg::kernels {

template <class S>
struct Packet;

// The answer of a comparison: all bits of a lane set or none.
template <class S>
struct Mask {
  using Register = typename Eigen::internal::packet_traits<S>::type;
  Register m;
  friend Mask operator&(Mask a, Mask b) { return {Eigen::internal::pand(a.m, b.m)}; }
  friend Mask operator|(Mask a, Mask b) { return {Eigen::internal::por(a.m, b.m)}; }
};

template <class S>
struct Packet {
  using Scalar = S;
  using Traits = Eigen::internal::packet_traits<S>;
  using Register = typename Traits::type;
  static constexpr int kWidth = Eigen::internal::unpacket_traits<Register>::size;
  // The matrix product's masked loads and stores, where they are for the same registers.
  using Masked = gemm::Simd<S>;
  static constexpr bool kMasked = std::is_same_v<typename Masked::Register, Register>;
  Register v;

  Packet() = default;
  // A template, so that a register type that is a plain float (no vector unit) is no trouble.
  static Packet of(Register r) {
    Packet p;
    p.v = r;
    return p;
  }
  template <class N>
  requires std::is_arithmetic_v<N> Packet(N value)
      : v(Eigen::internal::pset1<Register>(static_cast<S>(value))) {}

  static Packet load(const S* p) { return of(Eigen::internal::ploadu<Register>(p)); }
  void store(S* p) const { Eigen::internal::pstoreu(p, v); }
  // The first n lanes; the others are 0 and nothing is touched there.
  static Packet load(const S* p, int64_t n) {
    if constexpr (kMasked) return of(Masked::load(p, Masked::first(int(n))));
    S lanes[kWidth] = {};
    std::memcpy(lanes, p, size_t(n) * sizeof(S));
    return load(lanes);
  }
  void store(S* p, int64_t n) const {
    if constexpr (kMasked) return Masked::store(p, v, Masked::first(int(n)));
    S lanes[kWidth];
    store(lanes);
    std::memcpy(p, lanes, size_t(n) * sizeof(S));
  }
  template <class F>
  static Packet each_lane(Packet a, F f) {
    S lanes[kWidth];
    a.store(lanes);
    for (S& lane : lanes) lane = f(lane);
    return load(lanes);
  }

  friend Packet operator+(Packet a, Packet b) { return of(Eigen::internal::padd(a.v, b.v)); }
  friend Packet operator-(Packet a, Packet b) { return of(Eigen::internal::psub(a.v, b.v)); }
  friend Packet operator*(Packet a, Packet b) { return of(Eigen::internal::pmul(a.v, b.v)); }
  friend Packet operator/(Packet a, Packet b) { return of(Eigen::internal::pdiv(a.v, b.v)); }
  friend Packet operator-(Packet a) { return of(Eigen::internal::pnegate(a.v)); }
  // a * b + c, rounded once where the CPU can.
  friend Packet fma(Packet a, Packet b, Packet c) {
    return of(Eigen::internal::pmadd(a.v, b.v, c.v));
  }
  // Either operand where they compare as wished; for NaN in one of them, see below.
  friend Mask<S> operator<(Packet a, Packet b) { return {Eigen::internal::pcmp_lt(a.v, b.v)}; }
  friend Mask<S> operator<=(Packet a, Packet b) { return {Eigen::internal::pcmp_le(a.v, b.v)}; }
  friend Mask<S> operator>(Packet a, Packet b) { return b < a; }
  friend Mask<S> operator>=(Packet a, Packet b) { return b <= a; }
  friend Mask<S> operator==(Packet a, Packet b) { return {Eigen::internal::pcmp_eq(a.v, b.v)}; }
  friend Mask<S> operator!=(Packet a, Packet b) {  // true for NaN
    using namespace Eigen::internal;
    return {pandnot(ptrue(a.v), pcmp_eq(a.v, b.v))};
  }
  friend Packet where(Mask<S> c, Packet a, Packet b) {
    return of(Eigen::internal::pselect(c.m, a.v, b.v));
  }
  friend Packet clamp(Packet x, Packet low, Packet high) {
    Packet raised = where(x < low, low, x);
    return where(raised > high, high, raised);
  }
  friend Packet abs(Packet a) { return of(Eigen::internal::pabs(a.v)); }
  friend Packet sign(Packet a) {
    return where(a > Packet(0), Packet(1), where(a < Packet(0), Packet(-1), Packet(0)));
  }
  friend Packet floor(Packet a) { return of(Eigen::internal::pfloor(a.v)); }
  friend Packet ceil(Packet a) { return of(Eigen::internal::pceil(a.v)); }
  friend Packet round(Packet a) { return of(Eigen::internal::print(a.v)); }
  // Not Eigen's: with fast maths on that one is an approximation.
  friend Packet sqrt(Packet a) {
    return each_lane(a, [](S lane) { return std::sqrt(lane); });
  }
  friend Packet rsqrt(Packet a) { return Packet(1) / sqrt(a); }
};

}  // namespace tg::kernels
#pragma GCC diagnostic pop

#include "tapegrad/kernels/cpu/packet_math.h"
