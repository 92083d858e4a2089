// y += x for any element type: 16-bit floats add in f32, bool is "or".
#pragma once
#include <type_traits>

#include "tapegrad/core/dtype.h"

namespace tg::kernels {

template <class T>
inline void add_to(T& y, T x) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
    y = T(float(y) + float(x));
  else if constexpr (std::is_same_v<T, bool>)
    y = y || x;
  else if constexpr (std::is_integral_v<T>)  // wraps around
    y = T(std::make_unsigned_t<T>(y) + std::make_unsigned_t<T>(x));
  else
    y = T(y + x);
}

}  // namespace tg::kernels
