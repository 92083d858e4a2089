// Capture of a stream's work into a graph, and its launch. A graph keeps the order in which the
// work was submitted: with one that respects every wait, running it front to back is enough.
#include <algorithm>

#include "tapegrad/kernels/simt/runtime/state.h"

namespace tg::simt {

std::vector<CUgraph_st*>& captures() {
  static std::vector<CUgraph_st*> running;
  return running;
}

void break_capture(CUgraph_st* capture) { capture->broken = true; }

cudaError_t forbid_while_capturing() {
  for (CUgraph_st* capture : captures()) {
    if (capture->mode == cudaStreamCaptureModeRelaxed) continue;
    break_capture(capture);
    return cudaErrorStreamCaptureUnsupported;
  }
  return cudaSuccess;
}

}  // namespace tg::simt

using namespace tg::simt;

cudaError_t CUDARTAPI cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  auto guard = lock();
  CUstream_st& s = stream_of(stream);
  if (&s == &stream_of(nullptr)) return remember(cudaErrorStreamCaptureUnsupported);
  if (s.capture) return remember(cudaErrorIllegalState);
  s.capture = new CUgraph_st;
  s.capture->origin = &s;
  s.capture->mode = mode;
  captures().push_back(s.capture);
  return remember(context_error());
}

cudaError_t CUDARTAPI cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  auto guard = lock();
  CUstream_st& s = stream_of(stream);
  *graph = nullptr;
  CUgraph_st* capture = s.capture;
  if (!capture) return remember(cudaErrorIllegalState);
  if (capture->origin != &s) return remember(cudaErrorStreamCaptureUnmatched);
  bool joined = true;
  for (auto& [other, waited_for] : capture->others) {
    joined = joined && waited_for;
    other->capture = nullptr;
  }
  s.capture = nullptr;
  std::erase(captures(), capture);
  if (capture->broken || !joined) {
    cudaError_t error =
        capture->broken ? cudaErrorStreamCaptureInvalidated : cudaErrorStreamCaptureUnjoined;
    delete capture;
    return remember(error);
  }
  *graph = capture;
  return remember(context_error());
}

cudaError_t CUDARTAPI cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  auto guard = lock();
  CUgraph_st* capture = stream_of(stream).capture;
  *status = !capture          ? cudaStreamCaptureStatusNone
            : capture->broken ? cudaStreamCaptureStatusInvalidated
                              : cudaStreamCaptureStatusActive;
  return remember(context_error());
}

cudaError_t CUDARTAPI cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                           unsigned long long) {
  auto guard = lock();
  *exec = new CUgraphExec_st{graph->operations};
  return remember(context_error());
}

cudaError_t CUDARTAPI cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  auto guard = lock();
  for (const Operation& operation : exec->operations)
    if (operation.run)
      if (cudaError_t error = submit(stream_of(stream), {operation.run, {}, {}}))
        return remember(error);
  return remember(context_error());
}

cudaError_t CUDARTAPI cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
