// CUDA's words of a kernel that its own headers do not give to a host compiler: where a thread
// stands, and what shared memory is. Included after cuda_runtime.h.
#pragma once
#include <cuda_runtime.h>

// One copy for each thread of the system, which runs one block at a time: that makes it shared by
// the threads of a block and by nobody else.
#undef __shared__
#define __shared__ static thread_local
// Register budgets mean nothing here; ptxas reads them.
#ifndef __launch_bounds__
#define __launch_bounds__(...)
#endif

extern constinit thread_local uint3 threadIdx, blockIdx;
extern constinit thread_local dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;
