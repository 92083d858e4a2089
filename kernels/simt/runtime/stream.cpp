// Streams and events. A stream is a queue; whoever synchronises runs what is in it, and first what
// it waits for in others.
#include <algorithm>

#include "tapegrad/kernels/simt/runtime/launch.h"
#include "tapegrad/kernels/simt/runtime/state.h"
#include "tapegrad/kernels/simt/settings.h"

namespace tg::simt {
namespace {

CUstream_st& default_stream() {
  static CUstream_st stream;
  return stream;
}
std::vector<CUstream_st*>& other_streams() {
  static std::vector<CUstream_st*> all;
  return all;
}
uint64_t submitted = 0;

void run_first(CUstream_st& stream);

void run_up_to(CUstream_st& stream, uint64_t number) {
  while (!stream.queue.empty() && stream.queue.front().number < number) run_first(stream);
}

// The default stream and the blocking ones wait for each other in the order of submission.
void run_what_came_before(CUstream_st& stream, uint64_t number) {
  if (&stream != &default_stream()) {
    if (stream.blocking) run_up_to(default_stream(), number);
    return;
  }
  for (CUstream_st* other : other_streams())
    if (other->blocking) run_up_to(*other, number);
}

void run_first(CUstream_st& stream) {
  Operation operation = std::move(stream.queue.front());
  stream.queue.pop_front();
  run_what_came_before(stream, operation.number);
  if (operation.wait)
    while (!operation.wait->reached && !operation.wait->stream->queue.empty())
      run_first(*operation.wait->stream);
  if (operation.run && context_error() == cudaSuccess) operation.run();
  if (operation.marker) {
    operation.marker->reached = true;
    operation.marker->when = std::chrono::steady_clock::now();
  }
}

}  // namespace

CUstream_st& stream_of(cudaStream_t handle) {
  const bool is_default = !handle || handle == cudaStreamLegacy || handle == cudaStreamPerThread;
  return is_default ? default_stream() : *handle;
}

cudaError_t submit(CUstream_st& stream, Operation operation) {
  if (context_error() != cudaSuccess) return context_error();
  if (CUgraph_st* capture = stream.capture) {
    if (&stream != capture->origin) capture->others[&stream] = false;
    capture->operations.push_back(std::move(operation));
    return cudaSuccess;
  }
  operation.number = ++submitted;
  stream.queue.push_back(std::move(operation));
  if (!settings().lazy_streams) run_all(stream);
  return context_error();
}

void run_all(CUstream_st& stream) {
  while (!stream.queue.empty()) run_first(stream);
}

void run_everything() {
  run_all(default_stream());
  for (CUstream_st* stream : other_streams()) run_all(*stream);
}

void drop_everything() {
  default_stream().queue.clear();
  for (CUstream_st* stream : other_streams()) {
    stream->queue.clear();
    stream->capture = nullptr;
  }
  captures().clear();
}

cudaError_t enqueue(Launch launch, const void* function, cudaStream_t stream) {
  auto guard = lock();
  if (cudaError_t error = check_launch(launch, function)) return remember(error);
  auto run_kernel = [launch = std::move(launch)] {
    std::string error = run(launch);
    if (!error.empty()) break_context(error);
  };
  return remember(submit(stream_of(stream), {std::move(run_kernel), {}, {}}));
}

}  // namespace tg::simt

using namespace tg::simt;

cudaError_t CUDARTAPI cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  auto guard = lock();
  *stream = new CUstream_st;
  (*stream)->blocking = !(flags & cudaStreamNonBlocking);
  other_streams().push_back(*stream);
  return remember(context_error());
}
cudaError_t CUDARTAPI cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t CUDARTAPI cudaStreamDestroy(cudaStream_t stream) {
  auto guard = lock();
  if (std::erase(other_streams(), stream) == 0) return remember(cudaErrorInvalidResourceHandle);
  run_all(*stream);
  delete stream;
  return remember(context_error());
}

cudaError_t CUDARTAPI cudaStreamSynchronize(cudaStream_t stream) {
  auto guard = lock();
  if (CUgraph_st* capture = stream_of(stream).capture) {
    break_capture(capture);
    return remember(cudaErrorStreamCaptureUnsupported);
  }
  run_all(stream_of(stream));
  return remember(context_error());
}

// A stream that is asked often enough gets ahead by one piece of work each time.
cudaError_t CUDARTAPI cudaStreamQuery(cudaStream_t stream) {
  auto guard = lock();
  CUstream_st& s = stream_of(stream);
  if (s.queue.empty()) return remember(context_error());
  run_first(s);
  return cudaErrorNotReady;  // not an error to remember
}

cudaError_t CUDARTAPI cudaDeviceSynchronize(void) {
  auto guard = lock();
  if (cudaError_t error = forbid_while_capturing()) return remember(error);
  run_everything();
  return remember(context_error());
}

cudaError_t CUDARTAPI cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void* data) {
  auto guard = lock();
  return remember(submit(stream_of(stream), {[=] { fn(data); }, {}, {}}));
}

cudaError_t CUDARTAPI cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  auto guard = lock();
  *event = new CUevent_st;
  (*event)->timing = !(flags & cudaEventDisableTiming);
  return remember(context_error());
}
cudaError_t CUDARTAPI cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}
cudaError_t CUDARTAPI cudaEventDestroy(cudaEvent_t event) {
  auto guard = lock();
  delete event;
  return remember(context_error());
}

cudaError_t CUDARTAPI cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  auto guard = lock();
  CUstream_st& s = stream_of(stream);
  auto marker = std::make_shared<Marker>();
  marker->stream = &s;
  marker->captured_in = s.capture;
  event->last = marker;
  return remember(submit(s, {{}, marker, {}}));
}

cudaError_t CUDARTAPI cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  auto guard = lock();
  CUstream_st& s = stream_of(stream);
  if (!event->last) return cudaSuccess;  // never recorded: nothing to wait for
  if (CUgraph_st* capture = event->last->captured_in) {
    const bool runs = std::find(captures().begin(), captures().end(), capture) != captures().end();
    if (!runs || (s.capture && s.capture != capture)) return remember(cudaErrorIllegalState);
    s.capture = capture;  // joins
    cudaError_t error = submit(s, {{}, {}, {}});
    if (&s == capture->origin && event->last->stream != &s)
      capture->others[event->last->stream] = true;
    return remember(error);
  }
  return remember(submit(s, {{}, {}, event->last}));
}

cudaError_t CUDARTAPI cudaEventSynchronize(cudaEvent_t event) {
  auto guard = lock();
  if (event->last && event->last->captured_in) return remember(cudaErrorIllegalState);
  while (event->last && !event->last->reached && !event->last->stream->queue.empty())
    run_first(*event->last->stream);
  return remember(context_error());
}

cudaError_t CUDARTAPI cudaEventQuery(cudaEvent_t event) {
  auto guard = lock();
  if (!event->last || event->last->reached) return remember(context_error());
  if (!event->last->stream->queue.empty()) run_first(*event->last->stream);
  return cudaErrorNotReady;
}

cudaError_t CUDARTAPI cudaEventElapsedTime(float* milliseconds, cudaEvent_t start,
                                           cudaEvent_t end) {
  auto guard = lock();
  if (!start->timing || !end->timing || !start->last || !end->last)
    return remember(cudaErrorInvalidResourceHandle);
  if (!start->last->reached || !end->last->reached) return remember(cudaErrorNotReady);
  *milliseconds =
      std::chrono::duration<float, std::milli>(end->last->when - start->last->when).count();
  return remember(context_error());
}
