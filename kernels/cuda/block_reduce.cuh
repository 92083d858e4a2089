// The total of what the threads of a block hold, in an order that never changes: across the lanes
// of each warp, then across the warps.
#pragma once
#include "tapegrad/kernels/cuda/device.cuh"

namespace tg::gpu {

struct Add {
  template <class S>
  __device__ S operator()(S a, S b) const {
    return a + b;
  }
};
struct Max {  // of numbers; a NaN in a stays
  template <class S>
  __device__ S operator()(S a, S b) const {
    return b > a ? b : a;
  }
};

// join over the lanes of a warp; every lane gets the same bits.
template <class T, class Join>
__device__ inline T warp_total(T mine, Join join) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    mine = join(mine, __shfl_xor_sync(0xffffffffu, mine, distance));
  return mine;
}

// join over the kThreads threads of a block, all of which take part; every thread gets the total.
template <int kThreads, class T, class Join>
__device__ inline T block_total(T mine, Join join) {
  static_assert(kThreads % 32 == 0 && kThreads <= 1024);
  mine = warp_total(mine, join);
  if (kThreads == 32) return mine;
  __shared__ T of_warp[kThreads / 32];
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
  __syncthreads();
  T total = of_warp[0];
#pragma unroll
  for (int w = 1; w < kThreads / 32; ++w) total = join(total, of_warp[w]);
  __syncthreads();  // the next use must not overwrite what a slow thread still reads
  return total;
}

}  // namespace tg::gpu
