// Element types, the two 16-bit floats, and the rules by which mixed operands meet.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace tg {

enum class DType : uint8_t { f32, f64, f16, bf16, i8, u8, i16, i32, i64, boolean };
inline constexpr int kDTypeCount = 10;

inline constexpr DType f32 = DType::f32, f64 = DType::f64, f16 = DType::f16, bf16 = DType::bf16,
                       i8 = DType::i8, u8 = DType::u8, i16 = DType::i16, i32 = DType::i32,
                       i64 = DType::i64, boolean = DType::boolean;

// IEEE 754 binary16. Arithmetic happens in float; these bits only store.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float value);
  explicit operator float() const;
  static Half from_bits(uint16_t b) {
    Half h;
    h.bits = b;
    return h;
  }
};

// bfloat16: the upper half of a float, rounded to nearest even; NaN stays NaN.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) {
    uint32_t u = std::bit_cast<uint32_t>(value);
    bool nan = (u & 0x7fffffffu) > 0x7f800000u;
    bits = nan ? uint16_t((u >> 16) | 0x40) : uint16_t((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }
  static BFloat16 from_bits(uint16_t b) {
    BFloat16 h;
    h.bits = b;
    return h;
  }
};

// C++ type <-> DType.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>)
    return DType::f32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::f64;
  else if constexpr (std::is_same_v<T, Half>)
    return DType::f16;
  else if constexpr (std::is_same_v<T, BFloat16>)
    return DType::bf16;
  else if constexpr (std::is_same_v<T, bool>)
    return DType::boolean;
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 1 && std::is_unsigned_v<T>)
    return DType::u8;
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 1)
    return DType::i8;
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 2)
    return DType::i16;
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 4)
    return DType::i32;
  else {
    static_assert(std::is_integral_v<T> && sizeof(T) == 8, "no tensor dtype for this C++ type");
    return DType::i64;
  }
}

constexpr size_t size_of(DType t) {
  switch (t) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f16:
    case DType::bf16:
    case DType::i16:
      return 2;
    default:
      return 1;
  }
}
constexpr bool is_floating(DType t) {
  return t == DType::f32 || t == DType::f64 || t == DType::f16 || t == DType::bf16;
}
// Integers in the arithmetic sense: bool is not one.
constexpr bool is_integral(DType t) { return !is_floating(t) && t != DType::boolean; }

// "f32", "bf16", "bool": the names used in messages and configs. to_dtype throws a DTypeError on
// an unknown name.
const char* name_of(DType t);
DType to_dtype(const std::string& name);
std::string to_text(DType t);

// The common type of two tensors with dimensions: the higher category (bool < integer < float),
// and within one the wider; u8 with a signed type gives the next wider signed one; f16 with bf16
// gives f32. This is what PyTorch documents for result_type.
DType promote(DType a, DType b);

}  // namespace tg
