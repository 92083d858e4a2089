// Between a launch in the sources and the stream it goes to.
#pragma once
#include <cuda_runtime_api.h>

#include "tapegrad/kernels/simt/engine.h"

namespace tg::simt {

// cudaErrorInvalidConfiguration or cudaErrorInvalidValue for a launch that no device would take.
// `function` is the kernel's address, under which cudaFuncSetAttribute knows it.
cudaError_t enqueue(Launch launch, const void* function, cudaStream_t stream);

}  // namespace tg::simt
