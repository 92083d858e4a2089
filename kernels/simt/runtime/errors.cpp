#include <mutex>

#include "tapegrad/kernels/simt/runtime/state.h"
#include "tapegrad/kernels/simt/settings.h"

namespace tg::simt {
namespace {

cudaError_t last_error = cudaSuccess;
cudaError_t broken_context = cudaSuccess;
std::string& fault_text() {
  static std::string text;
  return text;
}

struct Name {
  cudaError_t error;
  const char *name, *text;
};
constexpr Name kNames[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection",
     "invalid copy direction for memcpy"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
     "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "capture was not initiated in this stream"},
    {cudaErrorIllegalState, "cudaErrorIllegalState",
     "the operation cannot be performed in the present state"},
};

const Name* find_name(cudaError_t error) {
  for (const Name& n : kNames)
    if (n.error == error) return &n;
  return nullptr;
}

}  // namespace

std::unique_lock<std::recursive_mutex> lock() {
  static std::recursive_mutex mutex;
  return std::unique_lock<std::recursive_mutex>(mutex);
}

cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

void break_context(const std::string& why) {
  report(why);
  if (broken_context != cudaSuccess) return;
  fault_text() = why;
  last_error = broken_context = cudaErrorLaunchFailure;
}

cudaError_t context_error() { return broken_context; }

}  // namespace tg::simt

using namespace tg::simt;

cudaError_t CUDARTAPI cudaGetLastError(void) {
  auto guard = lock();
  cudaError_t error = last_error;
  last_error = broken_context;
  return error;
}

cudaError_t CUDARTAPI cudaPeekAtLastError(void) {
  auto guard = lock();
  return last_error;
}

const char* CUDARTAPI cudaGetErrorName(cudaError_t error) {
  const Name* n = find_name(error);
  return n ? n->name : "unrecognized error code";
}

// Where a kernel failed, the real runtime knows no more than "unspecified launch failure".
const char* CUDARTAPI cudaGetErrorString(cudaError_t error) {
  auto guard = lock();
  if (error == cudaErrorLaunchFailure && !fault_text().empty()) return fault_text().c_str();
  const Name* n = find_name(error);
  return n ? n->text : "unrecognized error code";
}

// As after a fresh start: nothing waits, the device holds nothing, no fault has happened.
cudaError_t CUDARTAPI cudaDeviceReset(void) {
  auto guard = lock();
  drop_everything();
  free_device_memory();
  last_error = broken_context = cudaSuccess;
  fault_text().clear();
  return cudaSuccess;
}
