// Blocks of host memory: what stands between allocate() and the system. Private to core.
//
// Small blocks (up to 32 KiB) are cut from slabs and kept in lists of the thread that frees them:
// taking one is a pointer read. Lists that grow too long, or whose thread ends, go to a shared
// store. Large blocks live in the shared store alone. Sizes are rounded up to 8 classes per power
// of two, so at most an eighth is waste (and 63 bytes below 512).
#pragma once
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "tapegrad/core/memory.h"

namespace tg::detail {

// Under the address sanitizer every block is one of exactly the asked size, straight from the
// system, so that reads past its end are found.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kExactBlocks = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kExactBlocks = true;
#else
inline constexpr bool kExactBlocks = false;
#endif
#else
inline constexpr bool kExactBlocks = false;
#endif

inline constexpr size_t kLargestBlock = size_t(1) << 46;
inline constexpr size_t kLargestSmall = size_t(32) << 10;

// 64, 128 ... 512, then 8 steps to each power of two: 576, 640 ... 1024, 1152 ...
constexpr int size_class(size_t bytes) {
  size_t last = bytes - (bytes > 0);
  if (last < 512) return int(last >> 6);
  int power = int(std::bit_width(last)) - 1;  // 9 and up
  return 8 + (power - 9) * 8 + int((last >> (power - 3)) & 7);
}
constexpr size_t class_bytes(int c) {
  if (c < 8) return size_t(c + 1) << 6;
  int power = 9 + (c - 8) / 8;
  return (size_t(8 + (c - 8) % 8) + 1) << (power - 3);
}
inline constexpr int kSmallClasses = size_class(kLargestSmall) + 1;
inline constexpr int kClasses = size_class(kLargestBlock) + 1;

struct FreeBlock {
  FreeBlock* next;
};
struct FreeList {
  FreeBlock* head = nullptr;
  int64_t count = 0;
};

// What one thread keeps: its free lists, and its share of the statistics (a share may be
// negative: a thread may free what another has allocated). Only the owner writes.
struct ThreadMemory {
  FreeList lists[kSmallClasses];
  std::atomic<int64_t> live[kPurposeCount] = {};
  ThreadMemory* next = nullptr;  // in the list of all threads

  void count(Purpose p, int64_t bytes) {
    auto& share = live[int(p)];
    share.store(share.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
};

// Null until the thread's first allocation, and again while the thread ends.
inline constinit thread_local ThreadMemory* thread_memory = nullptr;
// Makes it; null while the thread ends.
ThreadMemory* start_thread_memory();

// A block of at least `bytes`, or null where the system has none. memory may be null.
void* take_shared(ThreadMemory* memory, size_t bytes);
void give_shared(ThreadMemory* memory, void* block, size_t bytes) noexcept;

inline void* take_block(ThreadMemory* memory, size_t bytes) {
  if (!kExactBlocks && memory && bytes <= kLargestSmall) {
    FreeList& list = memory->lists[size_class(bytes)];
    if (FreeBlock* block = list.head) [[likely]] {
      list.head = block->next;
      --list.count;
      return block;
    }
  }
  return take_shared(memory, bytes);
}

// A list holds at most this many blocks before half of it goes to the shared store.
constexpr int64_t most_kept(int c) { return int64_t((size_t(64) << 10) / class_bytes(c)) + 8; }

inline void give_block(ThreadMemory* memory, void* data, size_t bytes) noexcept {
  if (!kExactBlocks && memory && bytes <= kLargestSmall) {
    int c = size_class(bytes);
    FreeList& list = memory->lists[c];
    if (list.count < most_kept(c)) [[likely]] {
      auto* block = static_cast<FreeBlock*>(data);
      block->next = list.head;
      list.head = block;
      ++list.count;
      return;
    }
  }
  give_shared(memory, data, bytes);
}

// Bytes per purpose over all threads; adds to `sum`.
void add_live(int64_t (&sum)[kPurposeCount]);
// For a thread that has no ThreadMemory any more.
void count_without_thread(Purpose p, int64_t bytes);
// Bytes taken from the system.
int64_t reserved_bytes();
// Gives the cached large blocks back.
void release_cached_blocks();

}  // namespace tg::detail
