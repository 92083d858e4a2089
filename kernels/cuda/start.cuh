// How the launchers of the engine start a kernel: in the stream of the current device, checked.
#pragma once
#include <algorithm>
#include <utility>

#include "tapegrad/core/cuda/runtime.h"
#include "tapegrad/kernels/cuda/launch.cuh"

namespace tg::gpu {

// gpu::start<softmax_kernel<float>>({blocks, threads, shared_bytes}, x, y, columns);
// DeviceError if the launch fails.
template <auto kKernel, class... Args>
void start(Config config, Args&&... args) {
  config.stream = cuda::stream();
  cuda::check(launch<kKernel>(config, std::forward<Args>(args)...), "launch of a kernel");
}

inline constexpr int kThreads = 256;
// Bytes of dynamic shared memory that every device gives without being asked.
inline constexpr size_t kSharedByDefault = 48 << 10;

// As 16 bytes at a time need it.
inline bool aligned16(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

// Blocks of kThreads threads for n pieces of work, of which a thread takes more than one when there
// are very many: enough blocks to fill the largest device several times, whatever the device.
inline unsigned blocks_for_each(int64_t n) {
  constexpr int64_t kMostBlocks = 132 * 32;
  return unsigned(std::clamp<int64_t>((n + kThreads - 1) / kThreads, 1, kMostBlocks));
}

// The pieces of one thread: i, then steps of all threads further.
__device__ inline int64_t first_index() { return int64_t(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline int64_t index_step() { return int64_t(gridDim.x) * blockDim.x; }

// a / b of numbers that are not negative: a division of 32 bits, where that is enough, takes a
// fraction of one of 64.
__device__ inline int64_t quotient(int64_t a, int64_t b) {
  const bool narrow = (uint64_t(a) | uint64_t(b)) >> 32 == 0;
  return narrow ? int64_t(uint32_t(a) / uint32_t(b)) : a / b;
}

}  // namespace tg::gpu
