// exp, log and their kin on packets. Included by packet.h.
#pragma once
#include <limits>

#include "tapegrad/kernels/cpu/packet.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"

namespace tg::kernels {

// The value of c[0] + c[1] x + c[2] x^2 + ... with kCount coefficients.
template <int kCount, class S>
Packet<S> polynomial(Packet<S> x, const double* c) {
  Packet<S> y(c[kCount - 1]);
  for (int i = kCount - 2; i >= 0; --i) y = fma(y, x, Packet<S>(c[i]));
  return y;
}

// e^x = 2^n * e^r with n = round(x / log 2), r = x - n log 2 in two steps (log 2 in two pieces of
// which the first has zeros at its end, so n * first is exact), and the series of e^r, |r| < 0.35.
// Gradual down to the smallest number, 0 and infinity beyond; 1 unit in the last place.
template <class S>
Packet<S> exp(Packet<S> x) {
  constexpr bool single = std::is_same_v<S, float>;
  constexpr double kFactorials[] = {1.0,
                                    1.0,
                                    1.0 / 2,
                                    1.0 / 6,
                                    1.0 / 24,
                                    1.0 / 120,
                                    1.0 / 720,
                                    1.0 / 5040,
                                    1.0 / 40320,
                                    1.0 / 362880,
                                    1.0 / 3628800,
                                    1.0 / 39916800,
                                    1.0 / 479001600,
                                    1.0 / 6227020800};
  constexpr double kLog2High = single ? 0x1.62ep-1 : 0x1.62e42fefa38p-1;
  constexpr double kLog2Low = single ? 0x1.0bfbe8e7bcd5ep-15 : 0x1.ef35793c7673p-45;
  Packet<S> in = clamp(x, Packet<S>(single ? -104 : -746), Packet<S>(single ? 89 : 710));
  Packet<S> n = round(in * Packet<S>(1.44269504088896340736));
  Packet<S> r = fma(n, Packet<S>(-kLog2High), in);
  r = fma(n, Packet<S>(-kLog2Low), r);
  Packet<S> y = polynomial < single ? 8 : 14 > (r, kFactorials);
  return Packet<S>::of(Eigen::internal::pldexp(y.v, n.v));
}

// Eigen's takes numbers below the smallest normal one for that one.
template <class S>
Packet<S> log(Packet<S> x) {
  constexpr bool single = std::is_same_v<S, float>;
  Mask<S> tiny = x < Packet<S>(std::numeric_limits<S>::min());
  Packet<S> scaled = where(tiny, x * Packet<S>(single ? 0x1p24 : 0x1p54), x);
  Packet<S> y = Packet<S>::of(Eigen::internal::plog(scaled.v));
  Packet<S> shift((single ? 24 : 54) * 0.69314718055994530942);
  return where(tiny, y - shift, y);
}

template <class S>
Packet<S> sigmoid(Packet<S> x) {
  return Packet<S>(1) / (Packet<S>(1) + exp(-x));
}

template <class S>
Packet<S> tanh(Packet<S> x) {
  if constexpr (std::is_same_v<S, float> && Eigen::internal::packet_traits<S>::HasTanh)
    return Packet<S>::of(Eigen::internal::ptanh(x.v));
  else
    return Packet<S>::each_lane(x, [](S lane) { return std::tanh(lane); });
}

template <class S>
Packet<S> erf(Packet<S> x) {
  if constexpr (std::is_same_v<S, float> && Eigen::internal::packet_traits<S>::HasErf)
    return Packet<S>::of(Eigen::internal::perf(x.v));
  else
    return Packet<S>::each_lane(x, [](S lane) { return std::erf(lane); });
}

template <class S>
Packet<S> expm1(Packet<S> x) {
  if constexpr (std::is_same_v<S, float> && Eigen::internal::packet_traits<S>::HasExpm1)
    return Packet<S>::of(Eigen::internal::pexpm1(x.v));
  else
    return Packet<S>::each_lane(x, [](S lane) { return std::expm1(lane); });
}

template <class S>
Packet<S> log1p(Packet<S> x) {
  if constexpr (std::is_same_v<S, float> && Eigen::internal::packet_traits<S>::HasLog1p)
    return Packet<S>::of(Eigen::internal::plog1p(x.v));
  else
    return Packet<S>::each_lane(x, [](S lane) { return std::log1p(lane); });
}

template <class S>
Packet<S> sin(Packet<S> x) {
  if constexpr (std::is_same_v<S, float> && Eigen::internal::packet_traits<S>::HasSin)
    return Packet<S>::of(Eigen::internal::psin(x.v));
  else
    return Packet<S>::each_lane(x, [](S lane) { return std::sin(lane); });
}

template <class S>
Packet<S> cos(Packet<S> x) {
  if constexpr (std::is_same_v<S, float> && Eigen::internal::packet_traits<S>::HasCos)
    return Packet<S>::of(Eigen::internal::pcos(x.v));
  else
    return Packet<S>::each_lane(x, [](S lane) { return std::cos(lane); });
}

template <class S>
Packet<S> pow(Packet<S> x, Packet<S> y) {
  S base[Packet<S>::kWidth], exponent[Packet<S>::kWidth];
  x.store(base);
  y.store(exponent);
  for (int i = 0; i < Packet<S>::kWidth; ++i) base[i] = std::pow(base[i], exponent[i]);
  return Packet<S>::load(base);
}

template <class S>
Packet<S> normal_pdf(Packet<S> x) {
  return exp(x * x * Packet<S>(-0.5)) * Packet<S>(0.39894228040143267794);
}

// With q(x) = P(normal > |x|): 1 - q for x > 0, else q. In f32, q = exp(-x^2 / 2) * R(|x|), where R
// is 1/2 erfcx(|x| / sqrt 2) as a polynomial in t = 1 / (1 + 0.35 |x|), fitted to a relative error
// of 3.2e-8 on [0, 14.5]; x^2 / 2 is kept in two pieces. The whole tail is right to 4e-7.
template <class S>
Packet<S> normal_cdf(Packet<S> x) {
  if constexpr (std::is_same_v<S, float>) {
    constexpr double kFit[] = {0.0,
                               0.139621302485466,
                               0.1398635059595108,
                               0.11982142925262451,
                               0.1055518314242363,
                               -0.02321051061153412,
                               0.15931664407253265,
                               -0.25583600997924805,
                               0.14402930438518524,
                               -0.029157521203160286};
    using P = Packet<float>;
    P size = abs(x);
    size = where(size > P(15), P(15), size);
    P square = size * size;
    P lost = fma(size, size, -square);
    P e = exp(square * P(-0.5));
    e = fma(e, lost * P(-0.5), e);
    P t = P(1) / fma(size, P(0.35), P(1));
    P q = e * polynomial<10>(t, kFit);
    return where(x > P(0), P(1) - q, q);
  } else {
    return Packet<S>::each_lane(x, [](S lane) { return scalar::normal_cdf(lane); });
  }
}

}  // namespace tg::kernels
#pragma GCC diagnostic pop
