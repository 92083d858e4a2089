// Indices that come from a tensor are checked before anything is written: the host reads one number
// back, and so waits for what was launched before.
#pragma once
#include "tapegrad/core/allocator.h"
#include "tapegrad/kernels/cuda/elementwise.cuh"

namespace tg::gpu {

// What an index may be: in [low, high), or a value that means "none".
struct Range {
  int64_t low, high;
  bool has_none = false;
  int64_t none = 0;
  __device__ bool holds(int64_t i) const {
    return (i >= low && i < high) || (has_none && i == none);
  }
};

struct OutOfRange {
  int64_t position = -1;  // the first one, in row-major order; -1: there is none
  int64_t value = 0;
};

// result[0]: the smallest position of an index outside of the range, in logical order.
static __global__ void find_outside_kernel(Strided<0> loops, const char* indices, Range range,
                                           long long* result) {
  for (int64_t i = first_index(); i < loops.numel; i += index_step()) {
    int64_t place[1];
    find_places(loops, i, place);
    if (!range.holds(*reinterpret_cast<const int64_t*>(indices + place[0])))
      atomicMin(result, static_cast<long long>(i));
  }
}

inline OutOfRange find_outside(View indices, Range range) {
  OutOfRange found;
  if (indices.numel == 0) return found;
  const Device device = cuda::current_device();
  Workspace workspace(sizeof(long long), device);
  long long first = std::numeric_limits<long long>::max();
  cuda::copy(device, workspace.as<long long>(), kCpuDevice, &first, sizeof first);
  const Strided<0> loops = in_logical_order(indices);
  start<find_outside_kernel>({blocks_for_each(indices.numel), kThreads}, loops, indices.as<char>(),
                             range, workspace.as<long long>());
  cuda::copy(kCpuDevice, &first, device, workspace.as<long long>(), sizeof first);
  if (first == std::numeric_limits<long long>::max()) return found;
  found.position = first;
  int64_t offset = 0, rest = first;
  for (int d = loops.rank - 1; d >= 0; --d) {
    offset += rest % loops.size[d] * loops.step[0][d];
    rest /= loops.size[d];
  }
  cuda::copy(kCpuDevice, &found.value, device, indices.as<char>() + offset, sizeof found.value);
  return found;
}

}  // namespace tg::gpu
