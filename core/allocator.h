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

// Memory of a small object that is made and dropped often (a tensor's description, a node of the
// tape), from the same free lists but in no account. Derive from PooledObject to get it by `new`.
void* allocate_object(size_t bytes);  // std::bad_alloc
void deallocate_object(void* data, size_t bytes) noexcept;

struct PooledObject {
  static void* operator new(size_t bytes) { return allocate_object(bytes); }
  static void operator delete(void* data, size_t bytes) noexcept { deallocate_object(data, bytes); }
};

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
