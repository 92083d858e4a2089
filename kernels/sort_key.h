// Unsigned keys that sort like the values they are made of.
#pragma once
#include <bit>
#include <cstdint>
#include <type_traits>

#include "tapegrad/core/dtype.h"
#include "tapegrad/core/host_device.h"

namespace tg::kernels {

template <int kBytes>
using UInt = std::conditional_t<
    kBytes == 8, uint64_t,
    std::conditional_t<kBytes == 4, uint32_t, std::conditional_t<kBytes == 2, uint16_t, uint8_t>>>;

// Positive numbers get the top bit, negative ones are inverted whole: then bits sort like values.
// All NaNs get the largest key, both zeros the same one.
template <class T>
TG_HD UInt<sizeof(T)> key_of(T value) {
  using U = UInt<sizeof(T)>;
  constexpr U kTop = U(U(1) << (sizeof(T) * 8 - 1));
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, uint8_t>) {
    return U(value);
  } else if constexpr (std::is_integral_v<T>) {
    return U(U(value) ^ kTop);
  } else {
    constexpr U kInfinity = std::is_same_v<T, double>     ? U(0x7ff0000000000000ull)
                            : std::is_same_v<T, float>    ? U(0x7f800000u)
                            : std::is_same_v<T, BFloat16> ? U(0x7f80u)
                                                          : U(0x7c00u);
    U bits = std::bit_cast<U>(value);
    U magnitude = U(bits & U(~kTop));
    if (magnitude > kInfinity) return U(~U(0));
    if (magnitude == 0) return kTop;
    return bits & kTop ? U(~bits) : U(bits | kTop);
  }
}

}  // namespace tg::kernels
