// Random numbers as a function of a counter: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw:
// "Parallel random numbers: as easy as 1, 2, 3", 2011), and the numbers made of its words.
//
// Everything here is plain arithmetic that rounds in one way only: integers, correctly rounded
// + - * / sqrt, and fma where it is written. So the bits are the same on every CPU and GPU.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#include "tapegrad/core/host_device.h"
#include "tapegrad/core/random_state.h"

namespace tg {

struct RandomBlock {
  uint32_t word[4];
  // Two words as one number of 64 bits; i is 0 or 1.
  TG_HD uint64_t wide(int i) const { return uint64_t(word[2 * i + 1]) << 32 | word[2 * i]; }
};

template <class T>
struct NormalPair {
  T first, second;
};

TG_HD inline RandomBlock philox_4x32_10(const uint32_t (&counter)[4], const uint32_t (&key)[2]) {
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t(0xD2511F53u) * c0, p1 = uint64_t(0xCD9E8D57u) * c2;
    c0 = uint32_t(p1 >> 32) ^ c1 ^ k0;
    c1 = uint32_t(p1);
    c2 = uint32_t(p0 >> 32) ^ c3 ^ k1;
    c3 = uint32_t(p0);
    k0 += 0x9E3779B9u;  // golden ratio
    k1 += 0xBB67AE85u;  // sqrt(3) - 1
  }
  return {{c0, c1, c2, c3}};
}

TG_HD inline RandomBlock random_block(const RandomState& state, uint64_t block) {
  uint64_t at = state.offset + block;
  return philox_4x32_10(
      {uint32_t(at), uint32_t(at >> 32), uint32_t(state.stream), uint32_t(state.stream >> 32)},
      {uint32_t(state.seed), uint32_t(state.seed >> 32)});
}

// [0, 1): 24 bits for float, 53 for double. Never 1.
TG_HD inline float uniform_f32(uint32_t word) { return float(word >> 8) * 0x1p-24f; }
TG_HD inline double uniform_f64(uint64_t wide) { return double(wide >> 11) * 0x1p-53; }

// floor(wide * n / 2^64), a whole number in [0, n). Values differ in probability by less than
// n / 2^64.
TG_HD inline uint64_t uniform_below(uint64_t wide, uint64_t n) {
  uint64_t a = wide >> 32, b = wide & 0xffffffffu, c = n >> 32, d = n & 0xffffffffu;
  uint64_t middle = ((b * d) >> 32) + ((a * d) & 0xffffffffu) + ((b * c) & 0xffffffffu);
  return a * c + ((a * d) >> 32) + ((b * c) >> 32) + (middle >> 32);
}

namespace detail {

// log(u) for a normal u: u = 2^e m with m in [sqrt(1/2), sqrt(2)), f = m - 1, and
// log(1 + f) = f - f^2/2 + f^3 P(f). Largest error 1 unit in the last place or so.
TG_HD inline float random_log(float u) {
  constexpr uint32_t sqrt_half = 0x3f3504f3u;
  uint32_t bits;
  memcpy(&bits, &u, sizeof bits);
  bits -= sqrt_half;
  float e = float(int32_t(bits) >> 23);
  bits = (bits & 0x7fffffu) + sqrt_half;
  float m;
  memcpy(&m, &bits, sizeof m);
  float f = m - 1.0f, square = f * f;
  float p = -0x1.38b57cp-4f;
  p = std::fma(p, f, 0x1.055b68p-3f);
  p = std::fma(p, f, -0x1.0d8542p-3f);
  p = std::fma(p, f, 0x1.22da1ep-3f);
  p = std::fma(p, f, -0x1.547244p-3f);
  p = std::fma(p, f, 0x1.99a008p-3f);
  p = std::fma(p, f, -0x1.000226p-2f);
  p = std::fma(p, f, 0x1.555554p-2f);
  float tail = std::fma(e, -0x1.05c610p-29f, square * f * p);
  tail = std::fma(-0.5f, square, tail);
  return std::fma(e, 0x1.62e430p-1f, f + tail);  // log(2) = 0x1.62e430p-1 - 0x1.05c610p-29
}

// The same in double, by s = f / (2 + f) and log(1 + f) = f - s (f - s^2 R(s^2)).
TG_HD inline double random_log(double u) {
  constexpr uint64_t sqrt_half = 0x3fe6a09e667f3bcdu;
  uint64_t bits;
  memcpy(&bits, &u, sizeof bits);
  bits -= sqrt_half;
  double e = double(int64_t(bits) >> 52);
  bits = (bits & 0xfffffffffffffu) + sqrt_half;
  double m;
  memcpy(&m, &bits, sizeof m);
  double f = m - 1.0, s = f / (2.0 + f), z = s * s;
  double r = 0x1.2f056439aa25ep-3;
  r = std::fma(r, z, 0x1.39a1baa3e552cp-3);
  r = std::fma(r, z, 0x1.74663ee942c23p-3);
  r = std::fma(r, z, 0x1.c71c520958848p-3);
  r = std::fma(r, z, 0x1.24924941f12b8p-2);
  r = std::fma(r, z, 0x1.999999997fdb7p-2);
  r = std::fma(r, z, 0x1.5555555555592p-1);
  double tail = std::fma(e, 0x1.abc9e3b39803fp-56, -(s * std::fma(-z, r, f)));
  return std::fma(e, 0x1.62e42fefa39efp-1, f + tail);
}

// sin(pi f) and cos(pi f) for |f| <= 1/4.
TG_HD inline void random_sincos(float f, float& sine, float& cosine) {
  float z = f * f;
  float s = -0x1.2dd048p-1f;
  s = std::fma(s, z, 0x1.466032p+1f);
  s = std::fma(s, z, -0x1.4abbc0p+2f);
  sine = std::fma(f, 0x1.921fb6p+1f, f * std::fma(z, s, -0x1.777a5cp-24f));
  float c = 0x1.d9f7bcp-3f;
  c = std::fma(c, z, -0x1.55c664p+0f);
  c = std::fma(c, z, 0x1.03c1dep+2f);
  c = std::fma(c, z, -0x1.3bd3ccp+2f);
  cosine = std::fma(c, z, 1.0f);
}
TG_HD inline void random_sincos(double f, double& sine, double& cosine) {
  double z = f * f;
  double s = -0x1.6c63cba5b1529p-16;
  s = std::fma(s, z, 0x1.e8eef00a7834cp-12);
  s = std::fma(s, z, -0x1.e3074b7df5dc7p-8);
  s = std::fma(s, z, 0x1.50783485eeb5ap-4);
  s = std::fma(s, z, -0x1.32d2cce62ade5p-1);
  s = std::fma(s, z, 0x1.466bc6775aadbp+1);
  s = std::fma(s, z, -0x1.4abbce625be53p+2);
  sine = std::fma(f, 0x1.921fb54442d18p+1, f * std::fma(z, s, 0x1.1a62633145c07p-53));
  double c = -0x1.b26fe85e07607p-14;
  c = std::fma(c, z, 0x1.f9cc6acfcd734p-10);
  c = std::fma(c, z, -0x1.a6d1ecb7401e9p-6);
  c = std::fma(c, z, 0x1.e1f50683b42cbp-3);
  c = std::fma(c, z, -0x1.55d3c7e3c95bcp+0);
  c = std::fma(c, z, 0x1.03c1f081b5ab0p+2);
  c = std::fma(c, z, -0x1.3bd3cc9be45dep+2);
  cosine = std::fma(c, z, 1.0);
}

// radius * (cos, sin) of the angle pi (f + quarter / 2).
template <class T>
TG_HD inline NormalPair<T> on_circle(T radius, T f, unsigned quarter) {
  T sine, cosine;
  random_sincos(f, sine, cosine);
  T x = (quarter & 1) ? -sine : cosine;
  T y = (quarter & 1) ? cosine : sine;
  if (quarter & 2) {
    x = -x;
    y = -y;
  }
  return {radius * x, radius * y};
}

}  // namespace detail

// Two independent standard normals by Box and Muller: sqrt(-2 log u) (cos, sin)(2 pi v). u lies in
// (0, 1], so |x| stays below 6.8 (float) and 8.7 (double) and is never inf. The angle is reduced
// to an eighth of a turn as a whole number, without error.
TG_HD inline NormalPair<float> normal_pair(uint32_t a, uint32_t b) {
  float u = std::fma(float(a), 0x1p-32f, 0x1p-33f);
  float radius = std::sqrt(-2.0f * detail::random_log(u));
  uint32_t quarter = (b + 0x20000000u) >> 30;
  float f = float(int32_t(b - (quarter << 30))) * 0x1p-31f;
  return detail::on_circle(radius, f, quarter);
}
TG_HD inline NormalPair<double> normal_pair(uint64_t a, uint64_t b) {
  double u = std::fma(double(a >> 11), 0x1p-53, 0x1p-54);
  double radius = std::sqrt(-2.0 * detail::random_log(u));
  uint64_t quarter = (b + (uint64_t(1) << 61)) >> 62;
  double f = double(int64_t(b - (quarter << 62))) * 0x1p-63;
  return detail::on_circle(radius, f, unsigned(quarter));
}

// Elements of type T that one block gives: 4 floats (also for f16 and bf16, which are rounded from
// them) or 2 doubles; whole numbers in a range take a wide word each, 2 a block.
template <class T>
inline constexpr int kPerBlock = sizeof(T) == 8 ? 2 : 4;

// All elements of one block.
TG_HD inline void uniform_block(const RandomBlock& b, float (&x)[4]) {
  for (int i = 0; i < 4; ++i) x[i] = uniform_f32(b.word[i]);
}
TG_HD inline void uniform_block(const RandomBlock& b, double (&x)[2]) {
  for (int i = 0; i < 2; ++i) x[i] = uniform_f64(b.wide(i));
}
TG_HD inline void normal_block(const RandomBlock& b, float (&x)[4]) {
  for (int i = 0; i < 4; i += 2) {
    NormalPair<float> pair = normal_pair(b.word[i], b.word[i + 1]);
    x[i] = pair.first;
    x[i + 1] = pair.second;
  }
}
TG_HD inline void normal_block(const RandomBlock& b, double (&x)[2]) {
  NormalPair<double> pair = normal_pair(b.wide(0), b.wide(1));
  x[0] = pair.first;
  x[1] = pair.second;
}

}  // namespace tg
