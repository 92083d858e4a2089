#include "tapegrad/core/dtype.h"

#include "tapegrad/core/error.h"

namespace tg {

// Rounds to nearest even through the exponent trick: adding a power of two aligned with the
// target's last kept bit makes the float unit do the rounding.
Half::Half(float value) {
  uint32_t u = std::bit_cast<uint32_t>(value);
  uint32_t sign = (u >> 16) & 0x8000u;
  u &= 0x7fffffffu;
  if (u > 0x7f800000u) {  // NaN stays NaN, quiet
    bits = uint16_t(sign | 0x7e00u | ((u >> 13) & 0x1ffu));
  } else if (u >= 0x477ff000u) {  // 65520 and above round to infinity
    bits = uint16_t(sign | 0x7c00u);
  } else if (u < 0x38800000u) {  // below 2^-14: subnormal, the last bit is worth 2^-24
    float shifted = std::bit_cast<float>(u) + 0.5f;
    bits = uint16_t(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  } else {
    u += 0xfffu + ((u >> 13) & 1);
    bits = uint16_t(sign | ((u >> 13) - (112u << 10)));
  }
}

Half::operator float() const {
  uint32_t sign = uint32_t(bits & 0x8000u) << 16;
  uint32_t exponent = (bits >> 10) & 0x1fu, fraction = bits & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  if (exponent == 0) {
    float magnitude = float(fraction) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (fraction << 13));
}

const char* name_of(DType t) {
  static constexpr const char* names[kDTypeCount] = {"f32", "f64", "f16", "bf16", "i8",
                                                     "u8",  "i16", "i32", "i64",  "bool"};
  return names[int(t)];
}

DType to_dtype(const std::string& name) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (name == name_of(DType(i))) return DType(i);
  fail<DTypeError>("unknown dtype", name);
}

std::string to_text(DType t) { return name_of(t); }

DType promote(DType a, DType b) {
  if (a == b) return a;
  bool float_a = is_floating(a), float_b = is_floating(b);
  if (float_a && float_b) {
    if (a == f64 || b == f64) return f64;
    return f32;  // f32 with a 16-bit float, and f16 with bf16
  }
  if (float_a) return a;
  if (float_b) return b;
  if (a == boolean) return b;
  if (b == boolean) return a;
  if (a == u8 || b == u8) {  // the signed type that holds both
    DType other = a == u8 ? b : a;
    return other == i8 ? i16 : other;
  }
  return size_of(a) > size_of(b) ? a : b;
}

}  // namespace tg
