// The vocabulary that elementwise functors are written in, for plain numbers. Packets of the CPU
// (kernels/cpu/packet.h) and tensors (autograd/ops/unary.cpp) bring the same words.
//
//   exp expm1 log log1p sqrt rsqrt sin cos tanh erf sigmoid abs sign floor ceil round pow
//   normal_cdf(x)       how much of the standard normal distribution lies below x
//   normal_pdf(x)       its density
//   where(c, a, b)      a where c holds, else b: a choice, never a product
//   clamp(x, low, high) NaN stays NaN; high wins where the bounds are crossed
//   real<T>(1.5)        a constant beside values of type T
#pragma once
#include <cmath>
#include <type_traits>

#include "tapegrad/core/host_device.h"

namespace tg::functor {

// What a constant beside a T is: itself for numbers and packets; a Scalar beside a Tensor.
template <class T>
struct ConstantOf {
  using type = T;
};
template <class T>
TG_HD auto real(double value) {
  return typename ConstantOf<T>::type(value);
}

}  // namespace tg::functor

namespace tg::scalar {

// One definition serves float and double; other types find their own words by their namespace.
template <class T>
concept Number = std::is_same_v<T, float> || std::is_same_v<T, double>;

template <Number T>
TG_HD T exp(T x) {
  return std::exp(x);
}
template <Number T>
TG_HD T expm1(T x) {
  return std::expm1(x);
}
template <Number T>
TG_HD T log(T x) {
  return std::log(x);
}
template <Number T>
TG_HD T log1p(T x) {
  return std::log1p(x);
}
template <Number T>
TG_HD T sqrt(T x) {
  return std::sqrt(x);
}
template <Number T>
TG_HD T rsqrt(T x) {
  return T(1) / std::sqrt(x);
}
template <Number T>
TG_HD T sin(T x) {
  return std::sin(x);
}
template <Number T>
TG_HD T cos(T x) {
  return std::cos(x);
}
template <Number T>
TG_HD T tanh(T x) {
  return std::tanh(x);
}
template <Number T>
TG_HD T erf(T x) {
  return std::erf(x);
}
template <Number T>
TG_HD T sigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}
template <Number T>
TG_HD T normal_cdf(T x) {
  return T(0.5) * std::erfc(x * T(-0.70710678118654752440));
}
template <Number T>
TG_HD T normal_pdf(T x) {
  return T(0.39894228040143267794) * std::exp(T(-0.5) * x * x);
}
template <Number T>
TG_HD T abs(T x) {
  return std::fabs(x);
}
template <Number T>
TG_HD T sign(T x) {
  return x > 0 ? T(1) : x < 0 ? T(-1) : T(0);
}
template <Number T>
TG_HD T floor(T x) {
  return std::floor(x);
}
template <Number T>
TG_HD T ceil(T x) {
  return std::ceil(x);
}
template <Number T>
TG_HD T round(T x) {
  return std::rint(x);
}
template <Number T>
TG_HD T pow(T x, T y) {
  return std::pow(x, y);
}
template <Number T>
TG_HD T where(bool c, T a, T b) {
  return c ? a : b;
}
template <Number T>
TG_HD T clamp(T x, T low, T high) {
  T raised = x < low ? low : x;
  return raised > high ? high : raised;
}

}  // namespace tg::scalar

namespace tg::functor {

using scalar::abs;
using scalar::ceil;
using scalar::clamp;
using scalar::cos;
using scalar::erf;
using scalar::exp;
using scalar::expm1;
using scalar::floor;
using scalar::log;
using scalar::log1p;
using scalar::normal_cdf;
using scalar::normal_pdf;
using scalar::pow;
using scalar::round;
using scalar::rsqrt;
using scalar::sigmoid;
using scalar::sign;
using scalar::sin;
using scalar::sqrt;
using scalar::tanh;
using scalar::where;

}  // namespace tg::functor
