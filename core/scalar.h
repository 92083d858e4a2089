// A number beside a tensor: `x * 2` keeps an i32 tensor i32, `x * 2.5` makes it f32.
#pragma once
#include <cstdint>
#include <type_traits>

#include "tapegrad/core/dtype.h"

namespace tg {

class Scalar {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> Scalar(T value) {
    if constexpr (std::is_same_v<T, bool>) {
      kind_ = Kind::boolean;
      integer_ = value;
    } else if constexpr (std::is_integral_v<T>) {
      kind_ = Kind::integer;
      integer_ = int64_t(value);
    } else {
      kind_ = Kind::real;
      real_ = double(value);
    }
  }
  bool is_floating() const { return kind_ == Kind::real; }
  bool is_bool() const { return kind_ == Kind::boolean; }
  double to_double() const { return kind_ == Kind::real ? real_ : double(integer_); }
  int64_t to_int64() const { return kind_ == Kind::real ? int64_t(real_) : integer_; }
  // The dtype the number has on its own: bool, i64, or f32 (the default float type).
  DType dtype() const {
    return kind_ == Kind::real ? DType::f32 : kind_ == Kind::integer ? DType::i64 : DType::boolean;
  }

 private:
  enum class Kind : uint8_t { boolean, integer, real };
  Kind kind_;
  union {
    int64_t integer_;
    double real_;
  };
};

// Type of `tensor op scalar`: the tensor's, unless the number is of a higher category
// (bool < integer < float); then i64 or f32.
inline DType result_type(DType tensor, Scalar s) {
  if (s.is_floating()) return is_floating(tensor) ? tensor : DType::f32;
  if (s.is_bool() || tensor != DType::boolean) return tensor;
  return DType::i64;
}

}  // namespace tg
