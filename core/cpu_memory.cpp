#include "tapegrad/core/cpu_memory.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>

namespace tg::detail {
namespace {

constexpr size_t kSlabBytes = size_t(256) << 10;
constexpr int64_t kBatchBytes = int64_t(16) << 10;  // moved between a thread and the store at once
constexpr size_t kHugeFrom = size_t(4) << 20;       // from here on, ask for pages of 2 MiB
constexpr int64_t kSlack = int64_t(64) << 20;

// A cached large block, described in its own first bytes.
struct CachedBlock {
  CachedBlock *newer, *older;  // by age, over all classes
  CachedBlock *above, *below;  // the stack of its class
  int size_class;
};

std::atomic<int64_t> reserved{0};

void* system_take(size_t bytes) {
  bool huge = bytes >= kHugeFrom;
  void* data = nullptr;
  if (posix_memalign(&data, huge ? size_t(2) << 20 : 64, bytes) != 0) return nullptr;
#ifdef MADV_HUGEPAGE
  if (huge) madvise(data, bytes, MADV_HUGEPAGE);  // only an advice: fewer page faults
#endif
  reserved.fetch_add(int64_t(bytes), std::memory_order_relaxed);
  return data;
}

void system_give(void* data, size_t bytes) {
  std::free(data);
  reserved.fetch_sub(int64_t(bytes), std::memory_order_relaxed);
}

// Large blocks that nobody uses. Guarded by the store's mutex.
class LargeCache {
 public:
  void* take(int c) {
    CachedBlock* block = stacks_[c];
    if (block) unlink(block);
    return block;
  }
  void give(void* data, int c) {
    auto* block = ::new (data) CachedBlock{nullptr, newest_, nullptr, stacks_[c], c};
    if (newest_) newest_->newer = block;
    newest_ = block;
    if (!oldest_) oldest_ = block;
    if (stacks_[c]) stacks_[c]->above = block;
    stacks_[c] = block;
    bytes_ += int64_t(class_bytes(c));
  }
  int64_t bytes() const { return bytes_; }
  // Gives blocks back to the system, the longest unused first, until `most` bytes are left.
  void shrink(int64_t most) {
    while (bytes_ > most && oldest_) {
      CachedBlock* block = oldest_;
      int c = block->size_class;
      unlink(block);
      system_give(block, class_bytes(c));
    }
  }

 private:
  void unlink(CachedBlock* b) {
    (b->newer ? b->newer->older : newest_) = b->older;
    (b->older ? b->older->newer : oldest_) = b->newer;
    (b->above ? b->above->below : stacks_[b->size_class]) = b->below;
    if (b->below) b->below->above = b->above;
    bytes_ -= int64_t(class_bytes(b->size_class));
  }

  CachedBlock* stacks_[kClasses] = {};
  CachedBlock *newest_ = nullptr, *oldest_ = nullptr;
  int64_t bytes_ = 0;
};

// What all threads share. It has nothing to destroy, so it serves until the process is gone.
struct Store {
  std::mutex mutex;
  FreeList small[kSmallClasses];
  char *slab = nullptr, *slab_end = nullptr;  // what is left of the newest slab
  LargeCache large;
  int64_t large_live = 0, large_peak = 0;  // rounded bytes
  ThreadMemory* threads = nullptr;
  std::atomic<int64_t> live[kPurposeCount] = {};  // shares of threads that have ended
};
constinit Store store;

// One block for the caller; as many as make a batch go to `list`. With the mutex held.
void* take_small(FreeList* list, int c) {
  size_t size = class_bytes(c);
  int64_t more = list ? kBatchBytes / int64_t(size) : 0;
  FreeList& shared = store.small[c];
  auto next = [&]() -> FreeBlock* {
    if (FreeBlock* block = shared.head) {
      shared.head = block->next;
      --shared.count;
      return block;
    }
    if (size_t(store.slab_end - store.slab) < size) return nullptr;
    store.slab += size;
    return reinterpret_cast<FreeBlock*>(store.slab - size);
  };
  FreeBlock* first = next();
  if (!first) {
    // What is left of the old slab is cut into the blocks that fit, so nothing is lost.
    while (store.slab_end - store.slab >= 64) {
      int fits = size_class(size_t(store.slab_end - store.slab));
      if (class_bytes(fits) > size_t(store.slab_end - store.slab)) --fits;
      auto* rest = reinterpret_cast<FreeBlock*>(store.slab);
      store.slab += class_bytes(fits);
      rest->next = store.small[fits].head;
      store.small[fits].head = rest;
      ++store.small[fits].count;
    }
    store.slab = static_cast<char*>(system_take(kSlabBytes));
    store.slab_end = store.slab ? store.slab + kSlabBytes : nullptr;
    if (!store.slab) return nullptr;
    first = next();
  }
  for (; more > 0; --more) {
    FreeBlock* block = next();
    if (!block) break;
    block->next = list->head;
    list->head = block;
    ++list->count;
  }
  return first;
}

// With the mutex held.
void* take_large(int c) {
  int64_t size = int64_t(class_bytes(c));
  void* data = store.large.take(c);
  if (!data) {
    // In all, a quarter and some slack more than what was ever in use at once.
    int64_t peak = std::max(store.large_peak, store.large_live + size);
    store.large.shrink(std::max<int64_t>(0, peak + peak / 4 + kSlack - store.large_live - size));
    data = system_take(size_t(size));
    if (!data && store.large.bytes() > 0) {
      store.large.shrink(0);
      data = system_take(size_t(size));
    }
    if (!data) return nullptr;
  }
  store.large_live += size;
  store.large_peak = std::max(store.large_peak, store.large_live);
  return data;
}

// Moves up to n blocks of a thread's list to the store. With the mutex held.
void give_back(FreeList& from, int c, int64_t n) {
  FreeList& to = store.small[c];
  for (; n > 0 && from.head; --n) {
    FreeBlock* block = from.head;
    from.head = block->next;
    --from.count;
    block->next = to.head;
    to.head = block;
    ++to.count;
  }
}

// Ends the ThreadMemory together with its thread.
struct ThreadEnd {
  ~ThreadEnd() {
    ThreadMemory* memory = thread_memory;
    thread_memory = nullptr;
    if (!memory) return;
    std::lock_guard<std::mutex> lock(store.mutex);
    for (int c = 0; c < kSmallClasses; ++c) give_back(memory->lists[c], c, memory->lists[c].count);
    for (int p = 0; p < kPurposeCount; ++p) store.live[p] += memory->live[p].load();
    ThreadMemory** link = &store.threads;
    while (*link != memory) link = &(*link)->next;
    *link = memory->next;
    delete memory;
  }
};

}  // namespace

ThreadMemory* start_thread_memory() {
  static constinit thread_local bool started = false;
  if (started) return thread_memory;  // null: the thread is ending
  // A fork while another thread holds the mutex must not leave it locked in the child.
  static const int at_fork = pthread_atfork(
      [] { store.mutex.lock(); }, [] { store.mutex.unlock(); }, [] { store.mutex.unlock(); });
  (void)at_fork;
  auto* memory = new (std::nothrow) ThreadMemory;
  if (!memory) return nullptr;
  started = true;
  static thread_local ThreadEnd end;
  (void)end;
  std::lock_guard<std::mutex> lock(store.mutex);
  memory->next = store.threads;
  store.threads = memory;
  return thread_memory = memory;
}

void* take_shared(ThreadMemory* memory, size_t bytes) {
  if constexpr (kExactBlocks) {
    void* data = nullptr;
    size_t size = std::max<size_t>(bytes, 1);
    if (posix_memalign(&data, 64, size) != 0) return nullptr;
    reserved.fetch_add(int64_t(bytes), std::memory_order_relaxed);
    return data;
  }
  int c = size_class(bytes);
  std::lock_guard<std::mutex> lock(store.mutex);
  if (c >= kSmallClasses) return take_large(c);
  return take_small(memory ? &memory->lists[c] : nullptr, c);
}

void give_shared(ThreadMemory* memory, void* data, size_t bytes) noexcept {
  if constexpr (kExactBlocks) {
    system_give(data, bytes);
    return;
  }
  int c = size_class(bytes);
  std::lock_guard<std::mutex> lock(store.mutex);
  if (c >= kSmallClasses) {
    store.large_live -= int64_t(class_bytes(c));
    store.large.give(data, c);
    return;
  }
  FreeList one{static_cast<FreeBlock*>(data), 1};
  one.head->next = nullptr;
  give_back(one, c, 1);
  if (memory) give_back(memory->lists[c], c, memory->lists[c].count / 2);
}

void add_live(int64_t (&sum)[kPurposeCount]) {
  std::lock_guard<std::mutex> lock(store.mutex);
  for (int p = 0; p < kPurposeCount; ++p) {
    sum[p] += store.live[p].load();
    for (ThreadMemory* m = store.threads; m; m = m->next)
      sum[p] += m->live[p].load(std::memory_order_relaxed);
  }
}

void count_without_thread(Purpose p, int64_t bytes) { store.live[int(p)] += bytes; }

int64_t reserved_bytes() { return reserved.load(std::memory_order_relaxed); }

void release_cached_blocks() {
  std::lock_guard<std::mutex> lock(store.mutex);
  store.large.shrink(0);
  store.large_peak = store.large_live;
}

}  // namespace tg::detail
