// The end of a range of random numbers.
#pragma once
#include <cmath>
#include <limits>
#include <type_traits>

#include "tapegrad/core/dtype.h"

namespace tg::kernels {

// The largest number of type T below `bound`: a draw from [low, bound) that rounds up to the bound
// becomes this one.
template <class T>
T largest_below(double bound) {
  if constexpr (std::is_arithmetic_v<T>) {
    T value = T(bound);
    return double(value) < bound ? value : std::nextafter(value, -std::numeric_limits<T>::max());
  } else {
    T value{float(bound)};
    if (double(float(value)) < bound) return value;
    if ((value.bits & 0x7fff) == 0) return T::from_bits(0x8001);
    value.bits = uint16_t(value.bits & 0x8000 ? value.bits + 1 : value.bits - 1);
    return value;
  }
}

}  // namespace tg::kernels
