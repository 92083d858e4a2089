// Elementwise functions of one operand: the value f, the derivative df, and what df needs.
//
// df(s, dy) is dy times the derivative, where s is what `saves` names: the input, the output, or
// nothing (then s is not to be used). It chooses with where() instead of multiplying by 0 or 1, so
// that an infinite dy does not become NaN on the side that does not count.
//
// The same text runs as a packet in registers, as a CUDA thread, and (df) on tensors, when the
// derivative is itself recorded. To add one: write the struct, put its name into Unary below.
#pragma once
#include <limits>
#include <variant>

#include "tapegrad/kernels/scalar_math.h"

namespace tg::functor {

enum class Saves { nothing, input, output };

// Also defined on integers (with wrap-around), beside f32 and f64.
template <class F>
concept OnIntegers = F::on_integers;
// Derivative 0 everywhere: there is no df.
template <class F>
concept Flat = F::flat;

struct Neg {
  static constexpr auto saves = Saves::nothing;
  static constexpr bool on_integers = true;
  template <class T>
  TG_HD T f(T x) const {
    return -x;
  }
  template <class T>
  TG_HD T df(T, T dy) const {
    return -dy;
  }
};

struct Abs {  // the derivative at 0 is 0
  static constexpr auto saves = Saves::input;
  static constexpr bool on_integers = true;
  template <class T>
  TG_HD T f(T x) const {
    return abs(x);
  }
  template <class T>
  TG_HD T df(T x, T dy) const {
    return where(x > real<T>(0), dy, where(x < real<T>(0), -dy, real<T>(0)));
  }
};

struct Sign {
  static constexpr auto saves = Saves::nothing;
  static constexpr bool on_integers = true, flat = true;
  template <class T>
  TG_HD T f(T x) const {
    return sign(x);
  }
};

struct Floor {
  static constexpr auto saves = Saves::nothing;
  static constexpr bool flat = true;
  template <class T>
  TG_HD T f(T x) const {
    return floor(x);
  }
};

struct Ceil {
  static constexpr auto saves = Saves::nothing;
  static constexpr bool flat = true;
  template <class T>
  TG_HD T f(T x) const {
    return ceil(x);
  }
};

struct Round {  // half to even
  static constexpr auto saves = Saves::nothing;
  static constexpr bool flat = true;
  template <class T>
  TG_HD T f(T x) const {
    return round(x);
  }
};

struct Square {
  static constexpr auto saves = Saves::input;
  static constexpr bool on_integers = true;
  template <class T>
  TG_HD T f(T x) const {
    return x * x;
  }
  template <class T>
  TG_HD T df(T x, T dy) const {
    return dy * (x + x);
  }
};

struct Reciprocal {
  static constexpr auto saves = Saves::output;
  template <class T>
  TG_HD T f(T x) const {
    return real<T>(1) / x;
  }
  template <class T>
  TG_HD T df(T y, T dy) const {
    return -dy * (y * y);
  }
};

struct Exp {
  static constexpr auto saves = Saves::output;
  template <class T>
  TG_HD T f(T x) const {
    return exp(x);
  }
  template <class T>
  TG_HD T df(T y, T dy) const {
    return dy * y;
  }
};

struct Expm1 {
  static constexpr auto saves = Saves::output;
  template <class T>
  TG_HD T f(T x) const {
    return expm1(x);
  }
  template <class T>
  TG_HD T df(T y, T dy) const {
    return dy * (y + real<T>(1));
  }
};

struct Log {
  static constexpr auto saves = Saves::input;
  template <class T>
  TG_HD T f(T x) const {
    return log(x);
  }
  template <class T>
  TG_HD T df(T x, T dy) const {
    return dy / x;
  }
};

struct Log1p {
  static constexpr auto saves = Saves::input;
  template <class T>
  TG_HD T f(T x) const {
    return log1p(x);
  }
  template <class T>
  TG_HD T df(T x, T dy) const {
    return dy / (x + real<T>(1));
  }
};

struct Sqrt {
  static constexpr auto saves = Saves::output;
  template <class T>
  TG_HD T f(T x) const {
    return sqrt(x);
  }
  template <class T>
  TG_HD T df(T y, T dy) const {
    return dy / (y + y);
  }
};

struct Rsqrt {
  static constexpr auto saves = Saves::output;
  template <class T>
  TG_HD T f(T x) const {
    return rsqrt(x);
  }
  template <class T>
  TG_HD T df(T y, T dy) const {
    return dy * real<T>(-0.5) * (y * y * y);
  }
};

struct Sin {
  static constexpr auto saves = Saves::input;
  template <class T>
  TG_HD T f(T x) const {
    return sin(x);
  }
  template <class T>
  TG_HD T df(T x, T dy) const {
    return dy * cos(x);
  }
};

struct Cos {
  static constexpr auto saves = Saves::input;
  template <class T>
  TG_HD T f(T x) const {
    return cos(x);
  }
  template <class T>
  TG_HD T df(T x, T dy) const {
    return -dy * sin(x);
  }
};

struct Tanh {
  static constexpr auto saves = Saves::output;
  template <class T>
  TG_HD T f(T x) const {
    return tanh(x);
  }
  template <class T>
  TG_HD T df(T y, T dy) const {
    return dy * (real<T>(1) - y * y);
  }
};

struct Erf {
  static constexpr auto saves = Saves::input;
  template <class T>
  TG_HD T f(T x) const {
    return erf(x);
  }
  template <class T>
  TG_HD T df(T x, T dy) const {  // 2 / sqrt(pi) * exp(-x^2)
    return dy * (real<T>(1.12837916709551257390) * exp(-(x * x)));
  }
};

struct Sigmoid {
  static constexpr auto saves = Saves::output;
  template <class T>
  TG_HD T f(T x) const {
    return sigmoid(x);
  }
  template <class T>
  TG_HD T df(T y, T dy) const {
    return dy * ((real<T>(1) - y) * y);
  }
};

struct Relu {  // NaN stays NaN; the derivative at 0 is 0
  static constexpr auto saves = Saves::output;
  static constexpr bool on_integers = true;
  template <class T>
  TG_HD T f(T x) const {
    return where(x <= real<T>(0), real<T>(0), x);
  }
  template <class T>
  TG_HD T df(T y, T dy) const {
    return where(y <= real<T>(0), real<T>(0), dy);
  }
};

struct LeakyRelu {
  double slope = 0.01;
  static constexpr auto saves = Saves::input;
  template <class T>
  TG_HD T f(T x) const {
    return where(x > real<T>(0), x, x * real<T>(slope));
  }
  template <class T>
  TG_HD T df(T x, T dy) const {
    return where(x > real<T>(0), dy, dy * real<T>(slope));
  }
};

struct Elu {  // exp only where x <= 0: elsewhere it could be infinite
  double alpha = 1;
  static constexpr auto saves = Saves::input;
  template <class T>
  TG_HD T f(T x) const {
    return where(x <= real<T>(0), real<T>(alpha) * expm1(x), x);
  }
  template <class T>
  TG_HD T df(T x, T dy) const {
    constexpr double inf = std::numeric_limits<double>::infinity();
    return where(x <= real<T>(0), dy * (real<T>(alpha) * exp(clamp(x, real<T>(-inf), real<T>(0)))),
                 dy);
  }
};

// x times the normal distribution. Through its lower tail, so that nothing cancels for x < 0.
struct GeluErf {
  static constexpr auto saves = Saves::input;
  template <class T>
  TG_HD T f(T x) const {
    return x * normal_cdf(x);
  }
  template <class T>
  TG_HD T df(T x, T dy) const {
    // Beyond 40 the derivative is 0 or 1 to the last bit, and x * pdf would become inf * 0.
    T c = clamp(x, real<T>(-40), real<T>(40));
    return dy * (normal_cdf(c) + c * normal_pdf(c));
  }
};

// x * (1 + tanh(u)) / 2 = x * sigmoid(2u), u = sqrt(2 / pi) * (x + 0.044715 x^3).
struct GeluTanh {
  static constexpr auto saves = Saves::input;
  static constexpr double kScale = 1.59576912160573071175;  // 2 * sqrt(2 / pi)
  static constexpr double kCubic = 0.044715;
  template <class T>
  TG_HD T f(T x) const {
    return x * sigmoid(x * (real<T>(kScale) + x * x * real<T>(kScale * kCubic)));
  }
  template <class T>
  TG_HD T df(T x, T dy) const {
    // Beyond 22 the sigmoid is 0 or 1 in f64 too, and its slope times u' would become 0 * inf.
    T c = clamp(x, real<T>(-22), real<T>(22));
    T square = c * c;
    T s = sigmoid(c * (real<T>(kScale) + square * real<T>(kScale * kCubic)));
    T inner = real<T>(kScale) + square * real<T>(3 * kScale * kCubic);
    return dy * (s + c * (s * (real<T>(1) - s) * inner));
  }
};

struct Silu {
  static constexpr auto saves = Saves::input;
  template <class T>
  TG_HD T f(T x) const {
    return x * sigmoid(x);
  }
  template <class T>
  TG_HD T df(T x, T dy) const {
    T s = sigmoid(x);
    return dy * (s * (real<T>(1) + x * (real<T>(1) - s)));
  }
};

struct Softplus {  // log(1 + e^x) = max(x, 0) + log(1 + e^-|x|)
  static constexpr auto saves = Saves::input;
  template <class T>
  TG_HD T f(T x) const {
    return where(x <= real<T>(0), real<T>(0), x) + log1p(exp(-abs(x)));
  }
  template <class T>
  TG_HD T df(T x, T dy) const {
    return dy * sigmoid(x);
  }
};

struct Clamp {  // NaN stays NaN; the derivative is 1 inside, 0 at the bounds and beyond
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  static constexpr auto saves = Saves::input;
  static constexpr bool on_integers = true;
  template <class T>
  TG_HD T f(T x) const {
    return clamp(x, real<T>(low), real<T>(high));
  }
  template <class T>
  TG_HD T df(T x, T dy) const {
    return where(x > real<T>(low), where(x < real<T>(high), dy, real<T>(0)), real<T>(0));
  }
};

struct NormalCdf {
  static constexpr auto saves = Saves::input;
  template <class T>
  TG_HD T f(T x) const {
    return normal_cdf(x);
  }
  template <class T>
  TG_HD T df(T x, T dy) const {
    return dy * normal_pdf(x);
  }
};

struct PowNumber {  // x^exponent with a fixed exponent
  double exponent = 1;
  static constexpr auto saves = Saves::input;
  template <class T>
  TG_HD T f(T x) const {
    return pow(x, real<T>(exponent));
  }
  template <class T>
  TG_HD T df(T x, T dy) const {
    return dy * (real<T>(exponent) * pow(x, real<T>(exponent - 1)));
  }
};

using Unary = std::variant<Neg, Abs, Sign, Floor, Ceil, Round, Square, Reciprocal, Exp, Expm1, Log,
                           Log1p, Sqrt, Rsqrt, Sin, Cos, Tanh, Erf, Sigmoid, Relu, LeakyRelu, Elu,
                           GeluErf, GeluTanh, Silu, Softplus, Clamp, NormalCdf, PowNumber>;

}  // namespace tg::functor
