// The runtime: memory and its limit, error codes, streams, events, graphs.
#include "simt/device_array.h"

using namespace tg;
using namespace tg::test;
using Catch::Contains;

namespace {

__global__ void add_one(int* x) { *x += 1; }
__global__ void times_three(int* x) { *x *= 3; }

int value_of(const int* device) {
  int host = 0;
  REQUIRE(cudaMemcpy(&host, device, sizeof host, cudaMemcpyDeviceToHost) == cudaSuccess);
  return host;
}

struct Stream {
  cudaStream_t handle = nullptr;
  Stream() { REQUIRE(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking) == cudaSuccess); }
  ~Stream() { cudaStreamDestroy(handle); }
};
struct Event {
  cudaEvent_t handle = nullptr;
  Event() { REQUIRE(cudaEventCreate(&handle) == cudaSuccess); }
  ~Event() { cudaEventDestroy(handle); }
};
template <class T>
struct Pinned {
  T* data = nullptr;
  explicit Pinned(size_t count) {
    REQUIRE(cudaMallocHost(reinterpret_cast<void**>(&data), count * sizeof(T)) == cudaSuccess);
  }
  ~Pinned() { cudaFreeHost(data); }
};

}  // namespace

TEST_CASE("simt: device memory has an end", "[simt]") {
  FreshDevice fresh;
  simt::settings().memory = 1 << 20;
  void *a = nullptr, *b = nullptr;
  CHECK(cudaMalloc(&a, 768 << 10) == cudaSuccess);
  CHECK(cudaMalloc(&b, 512 << 10) == cudaErrorMemoryAllocation);
  CHECK(b == nullptr);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaSuccess);
  size_t free_bytes = 0, total = 0;
  CHECK(cudaMemGetInfo(&free_bytes, &total) == cudaSuccess);
  CHECK(total == 1 << 20);
  CHECK(free_bytes == 256 << 10);
  CHECK(cudaFree(a) == cudaSuccess);
  CHECK(cudaMalloc(&b, 512 << 10) == cudaSuccess);
  CHECK(cudaFree(b) == cudaSuccess);
  CHECK(cudaFree(b) == cudaErrorInvalidValue);
  CHECK_THAT(simt::take_report(), Contains("freed before"));
}

TEST_CASE("simt: a copy must fit and go where it says", "[simt]") {
  FreshDevice fresh;
  DeviceArray<int> x(4);
  int host[8] = {1, 2, 3, 4, 5, 6, 7, 8}, back[4] = {};
  CHECK(cudaMemcpy(x.get(), host, sizeof host, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK_THAT(simt::take_report(), Contains("32 bytes run past the end of an allocation of 16"));
  CHECK(cudaMemcpy(x.get(), host, 16, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(host, host + 4, 16, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK_THAT(simt::take_report(), Contains("host memory where the device's is expected"));
  CHECK(cudaMemset(host, 0, 4) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(x.get(), host, 16, cudaMemcpyDefault) == cudaSuccess);
  CHECK(cudaMemcpy(back, x.get(), 16, cudaMemcpyDefault) == cudaSuccess);
  CHECK((back[0] == 1 && back[3] == 4));
  CHECK(cudaMemset(x.get() + 1, 0, 8) == cudaSuccess);
  CHECK(x.values() == std::vector<int>{1, 0, 0, 4});
}

TEST_CASE("simt: error codes have names and texts", "[simt]") {
  CHECK(std::string(cudaGetErrorName(cudaErrorMemoryAllocation)) == "cudaErrorMemoryAllocation");
  CHECK(std::string(cudaGetErrorString(cudaErrorMemoryAllocation)) == "out of memory");
  CHECK(std::string(cudaGetErrorString(cudaErrorLaunchFailure)) == "unspecified launch failure");
  int count = 0, device = -1;
  CHECK(cudaGetDeviceCount(&count) == cudaSuccess);
  CHECK(count == 1);
  CHECK(cudaGetDevice(&device) == cudaSuccess);
  CHECK(device == 0);
  CHECK(cudaSetDevice(1) == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  cudaDeviceProp p;
  CHECK(cudaGetDeviceProperties(&p, 0) == cudaSuccess);
  CHECK(p.warpSize == 32);
  CHECK(std::string(p.name) == "emulated on the CPU");
}

TEST_CASE("simt: what the runtime tells of itself and of a pointer", "[simt]") {
  FreshDevice fresh;
  int runtime = 0, driver = 0, value = 0;
  CHECK(cudaRuntimeGetVersion(&runtime) == cudaSuccess);
  CHECK(cudaDriverGetVersion(&driver) == cudaSuccess);
  CHECK(runtime == CUDART_VERSION);
  CHECK(driver >= runtime);
  CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0) == cudaSuccess);
  CHECK(value == 227 << 10);
  CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 1) ==
        cudaErrorInvalidDevice);
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);  // looking did not clear it
  CHECK(cudaPeekAtLastError() == cudaSuccess);

  DeviceArray<int> x(1);
  Pinned<int> pinned(1);
  cudaPointerAttributes p;
  CHECK(cudaPointerGetAttributes(&p, x.get()) == cudaSuccess);
  CHECK((p.type == cudaMemoryTypeDevice && p.devicePointer == x.get()));
  CHECK(cudaPointerGetAttributes(&p, pinned.data) == cudaSuccess);
  CHECK((p.type == cudaMemoryTypeHost && p.hostPointer == pinned.data));
  CHECK(cudaPointerGetAttributes(&p, &value) == cudaSuccess);
  CHECK((p.type == cudaMemoryTypeUnregistered && !p.devicePointer));
}

TEST_CASE("simt: a function of the host runs when its stream comes to it", "[simt]") {
  FreshDevice fresh;
  simt::settings().lazy_streams = true;
  Stream stream;
  int calls = 0;
  auto count = [](void* n) { ++*static_cast<int*>(n); };
  CHECK(cudaLaunchHostFunc(stream.handle, count, &calls) == cudaSuccess);
  CHECK(calls == 0);
  CHECK(cudaStreamSynchronize(stream.handle) == cudaSuccess);
  CHECK(calls == 1);
}

TEST_CASE("simt: a lazy stream shows a synchronise that is missing", "[simt]") {
  FreshDevice fresh;
  DeviceArray<int> x(std::vector<int>{4});
  simt::settings().lazy_streams = true;
  Stream stream;
  Pinned<int> host(1);
  *host.data = -1;
  gpu::launch<add_one>({1, 1, 0, stream.handle}, x.get());
  cudaMemcpyAsync(host.data, x.get(), sizeof(int), cudaMemcpyDeviceToHost, stream.handle);
  CHECK(*host.data == -1);  // not there yet
  CHECK(cudaStreamQuery(stream.handle) == cudaErrorNotReady);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream.handle) == cudaSuccess);
  CHECK(*host.data == 5);
  CHECK(cudaStreamQuery(stream.handle) == cudaSuccess);
}

TEST_CASE("simt: pinned memory is read when the stream comes to it, other memory at once",
          "[simt]") {
  FreshDevice fresh;
  DeviceArray<int> x(2);
  simt::settings().lazy_streams = true;
  Stream stream;
  Pinned<int> pinned(1);
  int plain = 1;
  *pinned.data = 1;
  cudaMemcpyAsync(x.get(), pinned.data, sizeof(int), cudaMemcpyHostToDevice, stream.handle);
  cudaMemcpyAsync(x.get() + 1, &plain, sizeof(int), cudaMemcpyHostToDevice, stream.handle);
  *pinned.data = plain = 2;  // too early for the pinned one
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(x.values() == std::vector<int>{2, 1});
}

TEST_CASE("simt: a stream waits for an event of another", "[simt]") {
  for (bool waits : {true, false}) {
    FreshDevice fresh;
    DeviceArray<int> x(std::vector<int>{4});
    simt::settings().lazy_streams = true;
    Stream first, second;
    Event event;
    gpu::launch<add_one>({1, 1, 0, first.handle}, x.get());
    cudaEventRecord(event.handle, first.handle);
    CHECK(cudaEventQuery(event.handle) == cudaErrorNotReady);
    if (waits) cudaStreamWaitEvent(second.handle, event.handle, 0);
    gpu::launch<times_three>({1, 1, 0, second.handle}, x.get());
    // The query above has moved the first stream on; more work shows the order again.
    gpu::launch<add_one>({1, 1, 0, first.handle}, x.get());
    cudaEventRecord(event.handle, first.handle);
    if (waits) cudaStreamWaitEvent(second.handle, event.handle, 0);
    gpu::launch<times_three>({1, 1, 0, second.handle}, x.get());
    CHECK(cudaStreamSynchronize(second.handle) == cudaSuccess);
    CHECK(cudaStreamSynchronize(first.handle) == cudaSuccess);
    CHECK((value_of(x.get()) == ((4 + 1) * 3 + 1) * 3) == waits);
  }
}

TEST_CASE("simt: the default stream and blocking streams keep the order of submission", "[simt]") {
  FreshDevice fresh;
  DeviceArray<int> x(std::vector<int>{4});
  simt::settings().lazy_streams = true;
  cudaStream_t blocking = nullptr;
  CHECK(cudaStreamCreate(&blocking) == cudaSuccess);
  gpu::launch<add_one>({1, 1, 0, blocking}, x.get());
  gpu::launch<times_three>({1, 1}, x.get());
  gpu::launch<add_one>({1, 1, 0, blocking}, x.get());
  CHECK(cudaStreamSynchronize(blocking) == cudaSuccess);
  CHECK(value_of(x.get()) == 16);
  CHECK(cudaStreamDestroy(blocking) == cudaSuccess);
  CHECK(cudaStreamDestroy(blocking) == cudaErrorInvalidResourceHandle);
}

TEST_CASE("simt: events measure time", "[simt]") {
  FreshDevice fresh;
  Stream stream;
  Event start, end, never;
  float milliseconds = -1;
  cudaEventRecord(start.handle, stream.handle);
  cudaEventRecord(end.handle, stream.handle);
  CHECK(cudaEventSynchronize(end.handle) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&milliseconds, start.handle, end.handle) == cudaSuccess);
  CHECK(milliseconds >= 0);
  CHECK(cudaEventElapsedTime(&milliseconds, start.handle, never.handle) ==
        cudaErrorInvalidResourceHandle);
  simt::settings().lazy_streams = true;
  cudaEventRecord(end.handle, stream.handle);
  CHECK(cudaEventElapsedTime(&milliseconds, start.handle, end.handle) == cudaErrorNotReady);
}

TEST_CASE("simt: captured work runs when its graph is launched, as often as that", "[simt]") {
  FreshDevice fresh;
  DeviceArray<int> x(std::vector<int>{4});
  Stream stream, side;
  Event fork, join;
  REQUIRE(cudaStreamBeginCapture(stream.handle, cudaStreamCaptureModeGlobal) == cudaSuccess);
  gpu::launch<add_one>({1, 1, 0, stream.handle}, x.get());
  cudaEventRecord(fork.handle, stream.handle);
  cudaStreamWaitEvent(side.handle, fork.handle, 0);
  gpu::launch<times_three>({1, 1, 0, side.handle}, x.get());
  cudaEventRecord(join.handle, side.handle);
  cudaStreamWaitEvent(stream.handle, join.handle, 0);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CHECK(cudaStreamIsCapturing(side.handle, &status) == cudaSuccess);
  CHECK(status == cudaStreamCaptureStatusActive);
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(stream.handle, &graph) == cudaSuccess);
  CHECK(value_of(x.get()) == 4);  // nothing has run
  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  cudaGraphDestroy(graph);
  CHECK(cudaGraphLaunch(exec, stream.handle) == cudaSuccess);
  CHECK(cudaGraphLaunch(exec, stream.handle) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream.handle) == cudaSuccess);
  CHECK(value_of(x.get()) == ((4 + 1) * 3 + 1) * 3);
  cudaGraphExecDestroy(exec);
}

TEST_CASE("simt: what a capture forbids ends it", "[simt]") {
  FreshDevice fresh;
  Stream stream, side;
  Event fork;
  cudaGraph_t graph = nullptr;
  auto begin = [&] {
    REQUIRE(cudaStreamBeginCapture(stream.handle, cudaStreamCaptureModeGlobal) == cudaSuccess);
  };
  begin();
  CHECK(cudaStreamSynchronize(stream.handle) == cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamEndCapture(stream.handle, &graph) == cudaErrorStreamCaptureInvalidated);
  begin();
  void* p = nullptr;
  CHECK(cudaMalloc(&p, 4) == cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamEndCapture(stream.handle, &graph) == cudaErrorStreamCaptureInvalidated);
  begin();
  cudaEventRecord(fork.handle, stream.handle);
  cudaStreamWaitEvent(side.handle, fork.handle, 0);
  CHECK(cudaStreamEndCapture(side.handle, &graph) == cudaErrorStreamCaptureUnmatched);
  CHECK(cudaStreamEndCapture(stream.handle, &graph) == cudaErrorStreamCaptureUnjoined);
  CHECK(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal) ==
        cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamEndCapture(stream.handle, &graph) == cudaErrorIllegalState);
  CHECK(graph == nullptr);
}
