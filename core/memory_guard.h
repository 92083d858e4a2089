// Guard bytes around blocks of memory, for tests: a kernel that writes past the end of its output
// is found even where nothing else lives there.
#pragma once
#include <cstdint>

#include "tapegrad/core/cpu_memory.h"

namespace tg {

// While one lives, every block that allocate() hands out on the CPU (tensors, workspace) lies
// between 64 bytes of a known pattern on either side, and is filled with bytes 0xFF: NaN as a
// float, so that reading what was never written shows too. Blocks keep their guards until they are
// freed. Guards nest and are for all threads. Without one an allocation pays for one test of a
// flag.
//
// Under the address sanitizer it does nothing: there the system watches every byte, reads too.
class MemoryGuard {
 public:
  static constexpr bool kWorks = !detail::kExactBlocks;

  MemoryGuard();
  ~MemoryGuard();
  MemoryGuard(const MemoryGuard&) = delete;
  MemoryGuard& operator=(const MemoryGuard&) = delete;

  // Raises InternalError if a byte around any block was written: one that lives now, or one that
  // was freed since the last check. The message tells the size of the block, the side, how far
  // from it, and who had asked for the block.
  void check() const;
};

namespace detail {
// For the allocator. A guarded block, or null where the system has none.
void* take_guarded(ThreadMemory* memory, size_t bytes);
// Looks at the guards and gives the block back; false if the block has no guards.
bool give_guarded(ThreadMemory* memory, void* data, size_t bytes) noexcept;
// A guard lives, or a block that has guards does.
inline constinit std::atomic<bool> guards_in_use{false};
}  // namespace detail

}  // namespace tg
