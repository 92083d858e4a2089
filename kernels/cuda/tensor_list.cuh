// One launch over many tensors of any sizes. Their addresses travel with the launch, kTensors at a
// time, so nothing is copied beforehand and nobody waits; each block takes one chunk of one tensor.
#pragma once
#include "tapegrad/kernels/cuda/start.cuh"

namespace tg::gpu {

inline constexpr int kTensors = 48;  // what fits into the 4 KB of a launch's arguments
inline constexpr int64_t kChunk = 16384;

// Up to kArrays arrays of one length each: a parameter, its gradient and state.
template <int kArrays>
struct TensorList {
  int count = 0;
  int64_t first_chunk[kTensors + 1] = {};
  int64_t numel[kTensors];
  void* data[kArrays][kTensors];

  bool full() const { return count == kTensors; }
  void add(int64_t n, const void* const (&arrays)[kArrays]) {
    numel[count] = n;
    for (int k = 0; k < kArrays; ++k) data[k][count] = const_cast<void*>(arrays[k]);
    first_chunk[count + 1] = first_chunk[count] + (n + kChunk - 1) / kChunk;
    ++count;
  }
  int64_t chunks() const { return first_chunk[count]; }
};

struct Chunk {
  int tensor;
  int64_t begin, end;
};
template <int kArrays>
__device__ inline Chunk chunk_of_block(const TensorList<kArrays>& list) {
  int tensor = 0;
  while (list.first_chunk[tensor + 1] <= int64_t(blockIdx.x)) ++tensor;
  const int64_t begin = (int64_t(blockIdx.x) - list.first_chunk[tensor]) * kChunk;
  return {tensor, begin, min(begin + kChunk, list.numel[tensor])};
}

}  // namespace tg::gpu
