// What the emulated runtime knows. Private to this folder. Its functions are called with lock()
// held; kernels run meanwhile and do not call the runtime.
#pragma once
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

// A point in the work of a stream that others can wait for.
struct Marker {
  CUstream_st* stream = nullptr;
  CUgraph_st* captured_in = nullptr;
  bool reached = false;
  std::chrono::steady_clock::time_point when;
};

struct Operation {
  std::function<void()> run;       // may be empty
  std::shared_ptr<Marker> marker;  // reached afterwards
  std::shared_ptr<Marker> wait;    // for this one, before
  uint64_t number = 0;             // in the order of submission, over all streams
};

// CUDA's own names for what is behind its handles.
struct CUstream_st {
  std::deque<Operation> queue;
  bool blocking = true;  // ordered with the default stream
  CUgraph_st* capture = nullptr;
};
struct CUevent_st {
  std::shared_ptr<Marker> last;
  bool timing = true;
};
struct CUgraph_st {
  std::vector<Operation> operations;  // in the order of submission, which respects every wait
  CUstream_st* origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  // Streams that joined by waiting for an event, and whether the origin has waited for them since.
  std::map<CUstream_st*, bool> others;
  bool broken = false;
};
struct CUgraphExec_st {
  std::vector<Operation> operations;
};

namespace tg::simt {

std::unique_lock<std::recursive_mutex> lock();

// ---- Errors (errors.cpp)
// Keeps an error for cudaGetLastError; gives it back.
cudaError_t remember(cudaError_t error);
// A fault of a kernel: every later call fails with it.
void break_context(const std::string& why);
cudaError_t context_error();

// ---- Memory (memory.cpp)
struct Allocation {
  char* begin = nullptr;
  size_t bytes = 0;
  bool on_device = false;  // else pinned host memory
};
const Allocation* find_allocation(const void* address);
void free_device_memory();

// ---- The device (device.cpp)
struct Launch;
cudaError_t check_launch(const Launch& launch, const void* function);

// ---- Streams (stream.cpp)
CUstream_st& stream_of(cudaStream_t handle);
cudaError_t submit(CUstream_st& stream, Operation operation);
void run_all(CUstream_st& stream);
void run_everything();
void drop_everything();
// What may not happen while a capture runs ends that capture: cudaErrorStreamCaptureUnsupported.
cudaError_t forbid_while_capturing();
void break_capture(CUgraph_st* capture);
std::vector<CUgraph_st*>& captures();

}  // namespace tg::simt
