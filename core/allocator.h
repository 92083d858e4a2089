// Raw memory of a device. Tensors come through Storage; kernels take scratch from Workspace.
#pragma once
#include <cstddef>

#include "tapegrad/core/memory.h"

namespace tg {

// At least `bytes` bytes, aligned to 64 on the CPU; never null, also for 0 bytes. Freed blocks go
// to free lists by size class, so a repeated pattern of sizes costs no system call. Throws
// OutOfMemoryError (with how much was asked, what holds how much, and who asked).
void* allocate(Device device, size_t bytes, Purpose purpose);
// `bytes` and `purpose` as in allocate (or as the last retag said).
void deallocate(Device device, void* data, size_t bytes, Purpose purpose) noexcept;
// Moves `bytes` live bytes from one purpose to another.
void retag(Device device, size_t bytes, Purpose from, Purpose to) noexcept;

// Scratch of a kernel for the length of a scope, counted as workspace.
class Workspace {
 public:
  explicit Workspace(size_t bytes, Device device = {})
      : device_(device), bytes_(bytes), data_(allocate(device, bytes, Purpose::workspace)) {}
  ~Workspace() { deallocate(device_, data_, bytes_, Purpose::workspace); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  Device device_;
  size_t bytes_;
  void* data_;
};

}  // namespace tg
