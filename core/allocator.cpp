// Accounts of every allocation. The blocks themselves come from cpu_memory.
#include "tapegrad/core/allocator.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <new>
#include <vector>

#include "tapegrad/core/cpu_memory.h"
#include "tapegrad/core/cuda/cuda.h"
#include "tapegrad/core/error.h"
#include "tapegrad/core/memory_guard.h"

namespace tg {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

// One per device. `live` is one counter for all threads, because a peak and a limit are about the
// sum at a moment; what belongs to which purpose is counted per thread.
struct Account {
  alignas(64) std::atomic<int64_t> live{0};
  alignas(64) std::atomic<int64_t> peak{0};
  std::atomic<int64_t> limit{kNoLimit};
};
constinit Account cpu_account;

// Of a GPU: allocations are few, so the purposes are counted in one place too.
struct GpuAccount : Account {
  std::atomic<int64_t> by_purpose[kPurposeCount] = {};
};

GpuAccount& gpu_account(Device device) {
  if constexpr (kCuda) {
    static GpuAccount* const accounts = new GpuAccount[cuda::kMostDevices];
    cuda::require(device);
    return accounts[device.index];
  } else {
    fail<DeviceError>("there is no device " + to_text(device) + ";", cuda_status());
  }
}

Account& account(Device device) {
  if (device.is_cpu()) [[likely]]
    return cpu_account;
  return gpu_account(device);
}

void raise_peak(Account& a, int64_t live) {
  int64_t peak = a.peak.load(std::memory_order_relaxed);
  while (live > peak && !a.peak.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {}
}

// "parameter 12.0 MiB, saved 3.5 MiB": the purposes that hold most.
std::string holders(const MemoryStats& stats) {
  std::vector<int> order;
  for (int p = 0; p < kPurposeCount; ++p)
    if (stats.by_purpose[p] > 0) order.push_back(p);
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return stats.by_purpose[a] > stats.by_purpose[b]; });
  std::string text;
  for (size_t i = 0; i < order.size() && i < 4; ++i) {
    if (i) text += ", ";
    text += std::string(name_of(Purpose(order[i]))) + " " + bytes_text(stats.by_purpose[order[i]]);
  }
  return text;
}

[[noreturn]] void out_of_memory(Device device, size_t bytes, bool by_limit) {
  MemoryStats stats = memory_stats(device);
  std::string held = holders(stats);
  std::string text = "out of memory on " + to_text(device) + ": asked for " +
                     bytes_text(int64_t(std::min(bytes, size_t(kNoLimit)))) + ", in use " +
                     bytes_text(stats.live);
  if (!held.empty()) text += " (" + held + ")";
  if (by_limit)
    text +=
        ", limit " + bytes_text(account(device).limit.load()) + "; raise it with set_memory_limit";
  else
    text += device.is_cpu() ? ", and the system has no more" : ", and the device has no more";
  fail<OutOfMemoryError>(text + ", use a smaller batch, or checkpoint parts of the model");
}

detail::ThreadMemory* memory_of_thread() {
  detail::ThreadMemory* memory = detail::thread_memory;
  if (!memory) [[unlikely]]
    memory = detail::start_thread_memory();
  return memory;
}

void count(detail::ThreadMemory* memory, Purpose purpose, int64_t bytes) {
  if (memory) [[likely]]
    memory->count(purpose, bytes);
  else
    detail::count_without_thread(purpose, bytes);
}

void* gpu_allocate(Device device, size_t bytes, Purpose purpose) {
  GpuAccount& a = gpu_account(device);
  const int64_t live = a.live.fetch_add(int64_t(bytes)) + int64_t(bytes);
  const bool allowed = bytes <= detail::kLargestBlock && live <= a.limit.load();
  void* data = nullptr;
  try {
    if constexpr (kCuda) data = allowed ? cuda::take_block(device, bytes) : nullptr;
  } catch (...) {  // a device that is not there, or that has failed
    a.live.fetch_sub(int64_t(bytes));
    throw;
  }
  if (!data) {
    a.live.fetch_sub(int64_t(bytes));
    out_of_memory(device, bytes, live > a.limit.load());
  }
  raise_peak(a, live);
  a.by_purpose[int(purpose)] += int64_t(bytes);
  return data;
}

}  // namespace

void* allocate(Device device, size_t bytes, Purpose purpose) {
  if (!device.is_cpu()) [[unlikely]]
    return gpu_allocate(device, bytes, purpose);
  Account& a = cpu_account;
  if (bytes > detail::kLargestBlock) [[unlikely]]
    out_of_memory(device, bytes, false);
  int64_t live = a.live.fetch_add(int64_t(bytes), std::memory_order_relaxed) + int64_t(bytes);
  bool allowed = live <= a.limit.load(std::memory_order_relaxed);
  detail::ThreadMemory* memory = memory_of_thread();
  void* data = nullptr;
  if (detail::guards_in_use.load(std::memory_order_relaxed)) [[unlikely]]
    data = allowed ? detail::take_guarded(memory, bytes) : nullptr;
  else if (allowed) [[likely]]
    data = detail::take_block(memory, bytes);
  if (!data) [[unlikely]] {
    a.live.fetch_sub(int64_t(bytes), std::memory_order_relaxed);
    out_of_memory(device, bytes, !allowed);
  }
  if (live > a.peak.load(std::memory_order_relaxed)) [[unlikely]]
    raise_peak(a, live);
  count(memory, purpose, int64_t(bytes));
  return data;
}

void deallocate(Device device, void* data, size_t bytes, Purpose purpose) noexcept {
  if (!data) return;
  if constexpr (kCuda)
    if (!device.is_cpu()) {
      GpuAccount& a = gpu_account(device);
      cuda::give_block(device, data, bytes);
      a.live -= int64_t(bytes);
      a.by_purpose[int(purpose)] -= int64_t(bytes);
      return;
    }
  detail::ThreadMemory* memory = memory_of_thread();
  bool guarded = detail::guards_in_use.load(std::memory_order_relaxed);
  if (!guarded || !detail::give_guarded(memory, data, bytes)) [[likely]]
    detail::give_block(memory, data, bytes);
  cpu_account.live.fetch_sub(int64_t(bytes), std::memory_order_relaxed);
  count(memory, purpose, -int64_t(bytes));
}

void retag(Device device, size_t bytes, Purpose from, Purpose to) noexcept {
  if constexpr (kCuda)
    if (!device.is_cpu()) {
      GpuAccount& a = gpu_account(device);
      a.by_purpose[int(from)] -= int64_t(bytes);
      a.by_purpose[int(to)] += int64_t(bytes);
      return;
    }
  detail::ThreadMemory* memory = memory_of_thread();
  count(memory, from, -int64_t(bytes));
  count(memory, to, int64_t(bytes));
}

void* allocate_object(size_t bytes) {
  void* data = detail::take_block(memory_of_thread(), bytes);
  if (!data) throw std::bad_alloc();
  return data;
}

void deallocate_object(void* data, size_t bytes) noexcept {
  if (data) detail::give_block(memory_of_thread(), data, bytes);
}

MemoryStats memory_stats(Device device) {
  Account& a = account(device);
  MemoryStats stats;
  int64_t sum[kPurposeCount] = {};
  if (device.is_cpu()) detail::add_live(sum);
  for (int p = 0; !device.is_cpu() && p < kPurposeCount; ++p)
    sum[p] = gpu_account(device).by_purpose[p].load();
  for (int p = 0; p < kPurposeCount; ++p) {
    stats.by_purpose[p] = sum[p];
    stats.live += sum[p];
  }
  stats.peak = std::max(a.peak.load(std::memory_order_relaxed), stats.live);
  if (device.is_cpu()) stats.reserved = detail::reserved_bytes();
  if constexpr (kCuda)
    if (!device.is_cpu()) stats.reserved = cuda::reserved_bytes(device);
  return stats;
}

void reset_peak_memory(Device device) {
  Account& a = account(device);
  a.peak.store(a.live.load());
}

void set_memory_limit(int64_t bytes, Device device) {
  check<ValueError>(bytes >= 0, "set_memory_limit: a limit is 0 (none) or more, got", bytes);
  account(device).limit.store(bytes == 0 ? kNoLimit : bytes);
}

void empty_cache(Device device) {
  account(device);  // raises where there is no such device
  if (device.is_cpu()) detail::release_cached_blocks();
  if constexpr (kCuda)
    if (!device.is_cpu()) cuda::release_cached_blocks(device);
}

}  // namespace tg
