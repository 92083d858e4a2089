// Elementwise functions of two operands, in the vocabulary of kernels/scalar_math.h. Their
// derivatives are written with operators, in autograd/ops/arithmetic.cpp. To add one: write the
// struct, put its name into Binary below.
#pragma once
#include <variant>

#include "tapegrad/kernels/scalar_math.h"

namespace tg::functor {

struct Add {
  static constexpr bool on_integers = true;
  template <class T>
  TG_HD T f(T a, T b) const {
    return a + b;
  }
};

struct Sub {
  static constexpr bool on_integers = true;
  template <class T>
  TG_HD T f(T a, T b) const {
    return a - b;
  }
};

struct SubFrom {  // b - a: for a number before a tensor
  static constexpr bool on_integers = true;
  template <class T>
  TG_HD T f(T a, T b) const {
    return b - a;
  }
};

struct Mul {
  static constexpr bool on_integers = true;
  template <class T>
  TG_HD T f(T a, T b) const {
    return a * b;
  }
};

struct Div {
  static constexpr bool on_integers = false;
  template <class T>
  TG_HD T f(T a, T b) const {
    return a / b;
  }
};

struct DivFrom {  // b / a
  static constexpr bool on_integers = false;
  template <class T>
  TG_HD T f(T a, T b) const {
    return b / a;
  }
};

struct Pow {
  static constexpr bool on_integers = true;
  template <class T>
  TG_HD T f(T a, T b) const {
    return pow(a, b);
  }
};

struct PowFrom {  // b^a
  static constexpr bool on_integers = true;
  template <class T>
  TG_HD T f(T a, T b) const {
    return pow(b, a);
  }
};

// NaN if either is NaN: a comparison with NaN is false, so a NaN in b is kept by the second choice
// and one in a by the first.
struct Maximum {
  static constexpr bool on_integers = true;
  template <class T>
  TG_HD T f(T a, T b) const {
    return where(a != a, a, where(a > b, a, b));
  }
};

struct Minimum {
  static constexpr bool on_integers = true;
  template <class T>
  TG_HD T f(T a, T b) const {
    return where(a != a, a, where(a < b, a, b));
  }
};

using Binary = std::variant<Add, Sub, SubFrom, Mul, Div, DivFrom, Pow, PowFrom, Maximum, Minimum>;

}  // namespace tg::functor
