// Device memory, which here is memory of the host that only kernels and copies may touch, and
// pinned memory.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "tapegrad/kernels/simt/runtime/state.h"
#include "tapegrad/kernels/simt/settings.h"

namespace tg::simt {
namespace {

std::map<const char*, Allocation>& allocations() {
  static std::map<const char*, Allocation> all;
  return all;
}
size_t device_bytes = 0;

constexpr size_t kAlignment = 256;
size_t rounded(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Of exactly the asked size, so that the address sanitizer sees an access past the end.
cudaError_t take(void** p, size_t bytes, bool on_device) {
  if (!p) return cudaErrorInvalidValue;
  *p = nullptr;
  if (bytes == 0) return cudaSuccess;
  void* memory = nullptr;
  if (posix_memalign(&memory, kAlignment, bytes) != 0) return cudaErrorMemoryAllocation;
  if (on_device) {
    device_bytes += rounded(bytes);
    if (settings().poison) std::memset(memory, 0xFF, bytes);
  }
  *p = memory;
  allocations()[static_cast<char*>(memory)] = {static_cast<char*>(memory), bytes, on_device};
  return cudaSuccess;
}

cudaError_t give_back(void* p, bool on_device) {
  if (!p) return cudaSuccess;
  auto found = allocations().find(static_cast<char*>(p));
  if (found == allocations().end() || found->second.on_device != on_device) {
    report(std::string(on_device ? "cudaFree" : "cudaFreeHost") +
           ": not the start of memory that was allocated so, or freed before");
    return cudaErrorInvalidValue;
  }
  if (on_device) device_bytes -= rounded(found->second.bytes);
  allocations().erase(found);
  std::free(p);
  return cudaSuccess;
}

// True if the bytes lie within one allocation of the device, or in memory of the host.
bool check_range(const void* p, size_t bytes, bool on_device, const char* call) {
  const Allocation* a = find_allocation(p);
  if ((a && a->on_device) != on_device) {
    report(std::string(call) + ": " +
           (on_device ? "host memory where the device's is expected"
                      : "device memory where the host's is expected"));
    return false;
  }
  if (a && static_cast<const char*>(p) + bytes > a->begin + a->bytes) {
    report(std::string(call) + ": " + std::to_string(bytes) +
           " bytes run past the end of an allocation of " + std::to_string(a->bytes));
    return false;
  }
  return true;
}

bool is_device(const void* p) {
  const Allocation* a = find_allocation(p);
  return a && a->on_device;
}
bool is_pinned(const void* p) {
  const Allocation* a = find_allocation(p);
  return a && !a->on_device;
}

cudaMemcpyKind kind_of(const void* to, const void* from) {
  if (is_device(to)) return is_device(from) ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
  return is_device(from) ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost;
}

cudaError_t copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, CUstream_st& stream,
                 const char* call) {
  if (context_error() != cudaSuccess) return context_error();
  if (bytes == 0) return cudaSuccess;
  if (kind == cudaMemcpyDefault) kind = kind_of(to, from);
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDeviceToDevice)
    return cudaErrorInvalidMemcpyDirection;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (!check_range(to, bytes, to_device, call) || !check_range(from, bytes, from_device, call))
    return cudaErrorInvalidValue;
  // Memory that is not pinned is copied aside before the call returns, and written before it
  // returns; of pinned memory the stream makes use when its turn comes.
  if (!from_device && !is_pinned(from) && !stream.capture && settings().lazy_streams) {
    auto aside = std::make_shared<std::vector<char>>(static_cast<const char*>(from),
                                                     static_cast<const char*>(from) + bytes);
    return submit(stream, {[=] { std::memcpy(to, aside->data(), bytes); }, {}, {}});
  }
  cudaError_t error = submit(stream, {[=] { std::memmove(to, from, bytes); }, {}, {}});
  if (!to_device && !is_pinned(to) && !stream.capture) run_all(stream);
  return error;
}

}  // namespace

const Allocation* find_allocation(const void* address) {
  auto after = allocations().upper_bound(static_cast<const char*>(address));
  if (after == allocations().begin()) return nullptr;
  const Allocation& a = std::prev(after)->second;
  return static_cast<const char*>(address) < a.begin + a.bytes ? &a : nullptr;
}

void free_device_memory() {
  for (auto a = allocations().begin(); a != allocations().end();) {
    if (a->second.on_device) {
      std::free(a->second.begin);
      a = allocations().erase(a);
    } else {
      ++a;
    }
  }
  device_bytes = 0;
}

}  // namespace tg::simt

using namespace tg::simt;

cudaError_t CUDARTAPI cudaMalloc(void** p, size_t bytes) {
  auto guard = lock();
  if (cudaError_t error = forbid_while_capturing()) return remember(error);
  if (context_error() != cudaSuccess) return remember(context_error());
  if (bytes > settings().memory || device_bytes + rounded(bytes) > settings().memory) {
    if (p) *p = nullptr;
    return remember(cudaErrorMemoryAllocation);
  }
  return remember(take(p, bytes, true));
}

cudaError_t CUDARTAPI cudaFree(void* p) {
  auto guard = lock();
  if (cudaError_t error = forbid_while_capturing()) return remember(error);
  run_everything();  // the real one waits too
  cudaError_t error = give_back(p, true);
  return remember(error != cudaSuccess ? error : context_error());
}

cudaError_t CUDARTAPI cudaHostAlloc(void** p, size_t bytes, unsigned) {
  auto guard = lock();
  return remember(take(p, bytes, false));
}
cudaError_t CUDARTAPI cudaMallocHost(void** p, size_t bytes) { return cudaHostAlloc(p, bytes, 0); }

cudaError_t CUDARTAPI cudaFreeHost(void* p) {
  auto guard = lock();
  run_everything();
  return remember(give_back(p, false));
}

cudaError_t CUDARTAPI cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  auto guard = lock();
  *total = settings().memory;
  *free_bytes = settings().memory - std::min(settings().memory, device_bytes);
  return remember(context_error());
}

cudaError_t CUDARTAPI cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  auto guard = lock();
  if (cudaError_t error = forbid_while_capturing()) return remember(error);
  CUstream_st& stream = stream_of(nullptr);
  cudaError_t error = copy(to, from, bytes, kind, stream, "cudaMemcpy");
  run_all(stream);
  return remember(error != cudaSuccess ? error : context_error());
}

cudaError_t CUDARTAPI cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                      cudaStream_t stream) {
  auto guard = lock();
  return remember(copy(to, from, bytes, kind, stream_of(stream), "cudaMemcpyAsync"));
}

cudaError_t CUDARTAPI cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  auto guard = lock();
  if (bytes == 0) return cudaSuccess;
  if (!check_range(to, bytes, true, "cudaMemset")) return remember(cudaErrorInvalidValue);
  return remember(submit(stream_of(stream), {[=] { std::memset(to, value, bytes); }, {}, {}}));
}
cudaError_t CUDARTAPI cudaMemset(void* to, int value, size_t bytes) {
  return cudaMemsetAsync(to, value, bytes, nullptr);
}

// A __constant__ variable is one of the program's own.
cudaError_t CUDARTAPI cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes,
                                         size_t offset, cudaMemcpyKind) {
  auto guard = lock();
  run_everything();
  std::memcpy(static_cast<char*>(const_cast<void*>(symbol)) + offset, from, bytes);
  return remember(context_error());
}

cudaError_t CUDARTAPI cudaPointerGetAttributes(cudaPointerAttributes* out, const void* p) {
  auto guard = lock();
  *out = {};
  out->type = is_device(p)   ? cudaMemoryTypeDevice
              : is_pinned(p) ? cudaMemoryTypeHost
                             : cudaMemoryTypeUnregistered;
  if (is_device(p)) out->devicePointer = const_cast<void*>(p);
  if (!is_device(p)) out->hostPointer = const_cast<void*>(p);
  return cudaSuccess;
}
