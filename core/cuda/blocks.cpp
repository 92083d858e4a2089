// Blocks of device memory, kept by size class when they are freed: cudaMalloc and cudaFree wait for
// the device, which would cost more than most kernels.
#include <map>
#include <mutex>
#include <vector>

#include "tapegrad/core/cpu_memory.h"
#include "tapegrad/core/cuda/runtime.h"

namespace tg::cuda {
namespace {

struct Pool {
  std::mutex mutex;
  std::map<size_t, std::vector<void*>> free_blocks;  // by their size
  int64_t reserved = 0;
};

// Never destroyed: tensors of other statics may still come back.
Pool& pool_of(Device device) {
  static Pool* const pools = new Pool[kMostDevices];
  return pools[device.index];
}

// As on the CPU: eight steps to each power of two, or exactly for the address sanitizer, which
// watches the emulated device.
size_t block_bytes(size_t bytes) {
  if (detail::kExactBlocks) return bytes + (bytes == 0);
  return detail::class_bytes(detail::size_class(bytes));
}

void release(Pool& pool) {
  for (auto& [bytes, blocks] : pool.free_blocks)
    for (void* block : blocks) {
      cudaFree(block);
      pool.reserved -= int64_t(bytes);
    }
  pool.free_blocks.clear();
}

// Null where the device has no more; any other failure, of a kernel before for instance, raises.
void* new_block(size_t bytes) {
  void* block = nullptr;
  const cudaError_t error = cudaMalloc(&block, bytes);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // not an error of whoever asks next
    return nullptr;
  }
  check(error, "cudaMalloc");
  return block;
}

}  // namespace

void* take_block(Device device, size_t bytes) {
  require(device);
  enter(device);
  Pool& pool = pool_of(device);
  const size_t size = block_bytes(bytes);
  std::lock_guard<std::mutex> lock(pool.mutex);
  if (auto found = pool.free_blocks.find(size);
      found != pool.free_blocks.end() && !found->second.empty()) {
    void* block = found->second.back();
    found->second.pop_back();
    return block;
  }
  void* block = new_block(size);
  if (!block) {
    release(pool);
    block = new_block(size);
  }
  if (block) pool.reserved += int64_t(size);
  return block;
}

void give_block(Device device, void* block, size_t bytes) noexcept {
  Pool& pool = pool_of(device);
  const size_t size = block_bytes(bytes);
  std::lock_guard<std::mutex> lock(pool.mutex);
  if (detail::kExactBlocks) {
    cudaFree(block);
    pool.reserved -= int64_t(size);
    return;
  }
  pool.free_blocks[size].push_back(block);
}

void release_cached_blocks(Device device) {
  enter(device);
  Pool& pool = pool_of(device);
  std::lock_guard<std::mutex> lock(pool.mutex);
  release(pool);
}

int64_t reserved_bytes(Device device) {
  Pool& pool = pool_of(device);
  std::lock_guard<std::mutex> lock(pool.mutex);
  return pool.reserved;
}

}  // namespace tg::cuda
