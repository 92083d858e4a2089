// For sources that call the CUDA runtime: checked calls, and the stream that work goes to.
#pragma once
#include <cuda_runtime_api.h>

#include "tapegrad/core/cuda/cuda.h"

namespace tg::cuda {

// DeviceError that says which call failed and why. The failure of a kernel shows at a later call.
void check(cudaError_t error, const char* call);

// The stream of the calling thread's current device.
cudaStream_t stream();

}  // namespace tg::cuda
