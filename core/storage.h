// A counted block of memory that tensors view.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tapegrad/core/allocator.h"
#include "tapegrad/core/function.h"
#include "tapegrad/core/ref.h"

namespace tg {

struct Storage : PooledObject {
  std::atomic<int32_t> refs{1};
  // Raised by every write, through any view; what autograd saved remembers the value it saw.
  std::atomic<uint32_t> version{0};
  Device device;
  Purpose purpose = Purpose::other;
  void* data = nullptr;
  size_t bytes = 0;
  // Set for memory that is not ours (a mapped file, a user's array); called instead of freeing.
  Function<void()> release;

  void bump_version() {
    // One writer at a time by contract, so a plain increment will do.
    version.store(version.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void set_purpose(Purpose p) {
    if (p == purpose || release) return;
    retag(device, bytes, purpose, p);
    purpose = p;
  }
};

Ref<Storage> make_storage(Device device, size_t bytes, Purpose purpose = Purpose::other);
// Memory of somebody else; `release` runs when the last tensor lets go. Not counted.
Ref<Storage> wrap_storage(Device device, void* data, size_t bytes, Function<void()> release);
void destroy(Storage* storage);

}  // namespace tg
