// Short-lived memory of a kernel: packed panels, converted operands, partial sums.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tg::kernels {

// A block of at least `bytes` bytes, aligned to a page, from the calling thread's own free list,
// where it goes back to. Blocks are kept for the next call, so a kernel that runs again allocates
// nothing.
class ScratchBlock {
 public:
  explicit ScratchBlock(size_t bytes);
  ~ScratchBlock();
  ScratchBlock(const ScratchBlock&) = delete;
  ScratchBlock& operator=(const ScratchBlock&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  size_t capacity_ = 0;
};

// Room for `count` values of T, not initialised. count = 0 costs nothing.
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t count) : block_(static_cast<size_t>(count) * sizeof(T)) {}
  T* data() const { return static_cast<T*>(block_.data()); }
  T& operator[](int64_t i) const { return data()[i]; }

 private:
  ScratchBlock block_;
};

}  // namespace tg::kernels
