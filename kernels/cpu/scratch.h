// Short-lived memory of a kernel: packed panels, converted operands, partial sums.
#pragma once
#include <cstdint>

#include "tapegrad/core/allocator.h"

namespace tg::kernels {

// Room for `count` values of T, not initialised, counted as workspace until the scope ends. The
// allocator keeps freed blocks, so a kernel that runs again costs no system call.
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t count) : memory_(static_cast<size_t>(count) * sizeof(T)) {}
  T* data() const { return memory_.as<T>(); }
  T& operator[](int64_t i) const { return data()[i]; }

 private:
  Workspace memory_;
};

}  // namespace tg::kernels
