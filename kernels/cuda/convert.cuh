// Elements in memory and the types that device code computes in: 16-bit floats in float, narrow
// integers and bool in int32_t.
#pragma once
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tapegrad/core/dtype.h"
#include "tapegrad/kernels/cuda/device.cuh"

namespace tg::gpu {

__device__ inline float widen(Half v) { return __half2float(__ushort_as_half(v.bits)); }
__device__ inline float widen(BFloat16 v) { return __bfloat162float(__ushort_as_bfloat16(v.bits)); }
__device__ inline float widen(float v) { return v; }
__device__ inline double widen(double v) { return v; }

// Rounded to nearest, ties to even.
template <class T, class S>
__device__ T narrow(S v) {
  if constexpr (std::is_same_v<T, Half>) {
    T half;
    half.bits = __half_as_ushort(__float2half_rn(v));
    return half;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    T bfloat;
    bfloat.bits = __bfloat16_as_ushort(__float2bfloat16_rn(v));
    return bfloat;
  } else {
    return T(v);
  }
}

// What an element of storage type T is computed in.
template <class T>
using Computed =
    std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float,
                       std::conditional_t<std::is_integral_v<T> && sizeof(T) < 4, int32_t, T>>;

// One element of any dtype that is computed in S, chosen when the kernel runs: one piece of code
// for all of them, where memory is strided anyway.
template <class S>
__device__ S load_as(DType dtype, const void* p) {
  if constexpr (std::is_same_v<S, float>) {
    if (dtype == DType::f16) return widen(*static_cast<const Half*>(p));
    if (dtype == DType::bf16) return widen(*static_cast<const BFloat16*>(p));
  } else if constexpr (std::is_same_v<S, int32_t>) {
    if (dtype == DType::i16) return *static_cast<const int16_t*>(p);
    if (dtype == DType::i8) return *static_cast<const int8_t*>(p);
    if (size_of(dtype) == 1) return *static_cast<const uint8_t*>(p);  // u8, bool
  } else if constexpr (std::is_same_v<S, bool>) {  // a truth value: anything but zero
    if (dtype == DType::f32) return *static_cast<const float*>(p) != 0;
    if (dtype == DType::f64) return *static_cast<const double*>(p) != 0;
    const int bytes = int(size_of(dtype));
    if (bytes == 8) return *static_cast<const uint64_t*>(p) != 0;
    if (bytes == 4) return *static_cast<const uint32_t*>(p) != 0;
    if (bytes == 1) return *static_cast<const uint8_t*>(p) != 0;
    // Of a 16-bit float, minus zero is a zero too.
    return (*static_cast<const uint16_t*>(p) & (is_floating(dtype) ? 0x7fff : 0xffff)) != 0;
  }
  return *static_cast<const S*>(p);
}

template <class S>
__device__ void store_as(DType dtype, void* p, S value) {
  if constexpr (std::is_same_v<S, float>) {
    if (dtype == DType::f16) {
      *static_cast<Half*>(p) = narrow<Half>(value);
      return;
    }
    if (dtype == DType::bf16) {
      *static_cast<BFloat16*>(p) = narrow<BFloat16>(value);
      return;
    }
  } else if constexpr (std::is_same_v<S, int32_t>) {
    if (dtype == DType::i16) {
      *static_cast<int16_t*>(p) = int16_t(value);
      return;
    }
    if (size_of(dtype) == 1) {
      *static_cast<uint8_t*>(p) = dtype == DType::boolean ? uint8_t(value != 0) : uint8_t(value);
      return;
    }
  }
  *static_cast<S*>(p) = value;
}

}  // namespace tg::gpu
