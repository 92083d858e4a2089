// Adding to an element of any dtype: integers wrap around, truth values stay true.
#pragma once
#include "tapegrad/kernels/cuda/convert.cuh"

namespace tg::gpu {

template <class T>
__device__ void add_to(T& y, T x) {
  if constexpr (std::is_same_v<T, bool>)
    y = y || x;
  else if constexpr (std::is_integral_v<T>)
    y = T(uint64_t(y) + uint64_t(x));
  else
    y = narrow<T>(widen(y) + widen(x));
}

}  // namespace tg::gpu
