// Conversions between any two dtypes, by way of the widest type of a kind: double for floats,
// int64_t for integers and bool. What C++ leaves open is decided as in kernels/cpu/convert.cpp.
#pragma once
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tapegrad/kernels/cuda/convert.cuh"

namespace tg::gpu {

// C++ leaves open what a float beyond an integer's range becomes; here it is the bound, NaN is 0.
template <class To>
__device__ To cut_to_integer(double v) {
  constexpr double low = double(std::numeric_limits<To>::min());
  constexpr double above = double(std::numeric_limits<To>::max() / 2 + 1) * 2;  // max + 1, exact
  if (!(v >= low)) return v != v ? To(0) : std::numeric_limits<To>::min();
  return v < above ? To(v) : std::numeric_limits<To>::max();
}

// By way of f32, of which the last bit is made odd where it is not exact, so that the second
// rounding sees that something was left.
template <class To>
__device__ To round_once(double v) {
  float f = float(v);
  if (v == v && double(f) != v) {
    unsigned bits = __float_as_uint(f);
    if (fabs(double(f)) > fabs(v)) --bits;  // towards zero
    f = __uint_as_float(bits | 1u);
  }
  return narrow<To>(f);
}

template <class To>
struct FromReal {
  __device__ To operator()(double v) const {
    if constexpr (std::is_same_v<To, bool>)
      return v != 0;
    else if constexpr (std::is_integral_v<To>)
      return cut_to_integer<To>(v);
    else if constexpr (sizeof(To) == 2)
      return round_once<To>(v);
    else
      return To(v);
  }
};

template <class To>
struct FromInteger {
  __device__ To operator()(int64_t v) const {
    if constexpr (std::is_same_v<To, bool>)
      return v != 0;
    else if constexpr (std::is_arithmetic_v<To>)
      return To(v);
    else
      return narrow<To>(float(v));
  }
};

// An element of any dtype in the widest type of its kind.
struct Reals {
  using Wide = double;
  __device__ static double load(DType t, const void* p) {
    if (t == DType::f64) return load_as<double>(t, p);
    return load_as<float>(t, p);
  }
};
struct Integers {
  using Wide = int64_t;
  __device__ static int64_t load(DType t, const void* p) {
    if (t == DType::i64) return load_as<int64_t>(t, p);
    return load_as<int32_t>(t, p);
  }
};

// A wide value as an element of any dtype.
__device__ inline void store_wide(DType t, void* p, double v) {
  switch (t) {
    case DType::f64:
      return store_as<double>(t, p, v);
    case DType::f32:
      return store_as<float>(t, p, float(v));
    case DType::f16:
      *static_cast<Half*>(p) = FromReal<Half>()(v);
      return;
    case DType::bf16:
      *static_cast<BFloat16*>(p) = FromReal<BFloat16>()(v);
      return;
    case DType::i64:
      return store_as<int64_t>(t, p, FromReal<int64_t>()(v));
    case DType::boolean:
      return store_as<int32_t>(t, p, v != 0);
    default:  // narrow integers, each cut at its own bounds
      if (t == DType::i8) return store_as<int32_t>(t, p, FromReal<int8_t>()(v));
      if (t == DType::u8) return store_as<int32_t>(t, p, FromReal<uint8_t>()(v));
      if (t == DType::i16) return store_as<int32_t>(t, p, FromReal<int16_t>()(v));
      return store_as<int32_t>(t, p, FromReal<int32_t>()(v));
  }
}
__device__ inline void store_wide(DType t, void* p, int64_t v) {
  if (is_floating(t)) return store_wide(t, p, double(v));
  if (t == DType::i64) return store_as<int64_t>(t, p, v);
  if (t == DType::boolean) return store_as<int32_t>(t, p, v != 0);
  store_as<int32_t>(t, p, int32_t(v));
}

}  // namespace tg::gpu
