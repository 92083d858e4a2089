// The one device there is, and what a launch may ask of it: the limits of compute capability 9.0.
#include <cstdio>
#include <map>

#include "tapegrad/kernels/simt/runtime/launch.h"
#include "tapegrad/kernels/simt/runtime/state.h"
#include "tapegrad/kernels/simt/settings.h"

namespace tg::simt {

constexpr int kSharedByDefault = 48 << 10;
constexpr int kSharedOnDemand = 227 << 10;
constexpr int kMultiprocessors = 4;

// Dynamic shared memory that a kernel was allowed beyond the default.
std::map<const void*, int>& allowed_shared() {
  static std::map<const void*, int> allowed;
  return allowed;
}

cudaError_t check_launch(const Launch& launch, const void* function) {
  const dim3 g = launch.grid, b = launch.block;
  const uint64_t threads = uint64_t(b.x) * b.y * b.z;
  auto found = allowed_shared().find(function);
  const int shared = found == allowed_shared().end() ? kSharedByDefault : found->second;
  if (!g.x || !g.y || !g.z || g.x > 0x7fffffffu || g.y > 65535 || g.z > 65535 || !threads ||
      threads > 1024 || b.z > 64) {
    report("kernel " + launch.kernel + ": no device takes a grid of " + std::to_string(g.x) + "x" +
           std::to_string(g.y) + "x" + std::to_string(g.z) + " blocks of " +
           std::to_string(threads) + " threads");
    return cudaErrorInvalidConfiguration;
  }
  if (launch.shared > size_t(shared)) {
    report("kernel " + launch.kernel + ": asks for " + std::to_string(launch.shared) +
           " bytes of shared memory, allowed are " + std::to_string(shared) +
           "; cudaFuncSetAttribute raises that");
    return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

}  // namespace tg::simt

using namespace tg::simt;

cudaError_t CUDARTAPI cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaSetDevice(int device) {
  auto guard = lock();
  return remember(device == 0 ? context_error() : cudaErrorInvalidDevice);
}
cudaError_t CUDARTAPI cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  auto guard = lock();
  if (device != 0) return remember(cudaErrorInvalidDevice);
  *p = {};
  std::snprintf(p->name, sizeof p->name, "emulated on the CPU");
  p->major = 9;
  p->multiProcessorCount = kMultiprocessors;
  p->warpSize = 32;
  p->maxThreadsPerBlock = 1024;
  p->maxThreadsPerMultiProcessor = 2048;
  p->regsPerBlock = 65536;
  p->sharedMemPerBlock = kSharedByDefault;
  p->sharedMemPerBlockOptin = kSharedOnDemand;
  p->totalGlobalMem = settings().memory;
  p->maxGridSize[0] = 0x7fffffff;
  p->maxGridSize[1] = p->maxGridSize[2] = 65535;
  return cudaSuccess;
}

cudaError_t CUDARTAPI cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  auto guard = lock();
  if (device != 0) return remember(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = kMultiprocessors;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = kSharedOnDemand;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = 9;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = 0;
      return cudaSuccess;
    default:
      return remember(cudaErrorInvalidValue);
  }
}

cudaError_t CUDARTAPI cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute,
                                           int value) {
  auto guard = lock();
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;  // advice only
  if (value < 0 || value > kSharedOnDemand) return remember(cudaErrorInvalidValue);
  allowed_shared()[function] = value;
  return remember(context_error());
}

cudaError_t CUDARTAPI cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
