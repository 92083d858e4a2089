// Kernels with faults: what is noticed, and what is said about it.
#include "simt/device_array.h"
#include "tapegrad/core/allocator.h"

using namespace tg;
using namespace tg::test;
using Catch::Contains;

namespace {

constexpr int kLineOfDeadlock = __LINE__ + 4;
__global__ void half_waits(int* out) {
  if (threadIdx.x < 40) out[threadIdx.x] = 1;
  if (threadIdx.x >= 40)
    __shfl_sync(0xffffffffu, 1, 0);
  else
    __syncthreads();
}

__global__ void two_barriers(int* out) {
  if (threadIdx.x % 2)
    __syncthreads();
  else
    __syncthreads();
  out[threadIdx.x] = 1;
}

__global__ void two_collectives() {
  if (threadIdx.x % 2)
    __shfl_sync(0xffffffffu, 1, 0);
  else
    __ballot_sync(0xffffffffu, 1);
}

__global__ void lane_outside_of_its_mask() { __syncwarp(0x0000ffffu); }

__global__ void waits_for_a_flag(volatile int* flag) {
  if (threadIdx.x == 0) {
    while (*flag == 0) {}
  } else {
    *flag = 1;
  }
}

__global__ void traps() {
  if (threadIdx.x == 3) __trap();
}

__global__ void misaligned(const float* in, float4* out) { *out = gpu::load<float4>(in + 1); }

__global__ void without_barrier(const int* in, int* out) {
  __shared__ int tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = tile[63 - threadIdx.x];
}

__global__ void reads_what_nobody_wrote(float* out) {
  out[threadIdx.x] = gpu::dynamic_shared<float>()[threadIdx.x];
}

__global__ void leaves_copies_behind(const float* in) {
  gpu::copy16_later(gpu::shared_address(), in);
  gpu::close_copy_group();
}

__global__ void fine(int* out) { out[threadIdx.x] = 5; }

// What a launch is said to have failed with: "" if it did not.
template <auto kKernel, class... Args>
std::string fault_of(gpu::Config config, Args... args) {
  cudaError_t error = gpu::launch<kKernel>(config, args...);
  if (error == cudaSuccess) return "";
  CHECK(error == cudaErrorLaunchFailure);
  std::string text = cudaGetErrorString(error);
  CHECK(text.find('\n') == text.npos);
  return text;
}

}  // namespace

TEST_CASE("simt: a deadlock names who waits where", "[simt]") {
  FreshDevice fresh;
  for (simt::Order order : kOrders) {
    simt::settings().order = order;
    DeviceArray<int> out(64);
    std::string text = fault_of<half_waits>({1, 64}, out.get());
    CHECK_THAT(text, Contains("half_waits, block (0,0,0): deadlock: "));
    CHECK_THAT(text, Contains("40 threads, the first is (0,0,0), wait in __syncthreads() at "
                              "faults_test.cpp:" +
                              std::to_string(kLineOfDeadlock + 2)));
    CHECK_THAT(text, Contains("24 threads, the first is (40,0,0), wait in __shfl_sync of mask "
                              "ffffffff at faults_test.cpp:" +
                              std::to_string(kLineOfDeadlock)));
    CHECK_THAT(simt::take_report(), Contains("deadlock"));
    out.forget();
    FreshDevice::reset();
  }
}

TEST_CASE("simt: threads at two barriers at once are divergence", "[simt]") {
  FreshDevice fresh;
  DeviceArray<int> out(64);
  std::string text = fault_of<two_barriers>({1, 64}, out.get());
  CHECK_THAT(text, Contains("two_barriers, block (0,0,0): thread (1,0,0) at faults_test.cpp:"));
  CHECK_THAT(text, Contains("barrier divergence: stands in __syncthreads() while thread (0,0,0) "
                            "waits in __syncthreads() at faults_test.cpp:"));
  out.forget();
}

TEST_CASE("simt: lanes of one mask in two functions are divergence", "[simt]") {
  FreshDevice fresh;
  std::string text = fault_of<two_collectives>({1, 32});
  CHECK_THAT(text, Contains("thread (1,0,0) at faults_test.cpp:"));
  CHECK_THAT(text, Contains("warp divergence: stands in __shfl_sync while other lanes of the same "
                            "mask wait in __ballot_sync at faults_test.cpp:"));
}

TEST_CASE("simt: a lane that its own mask leaves out", "[simt]") {
  FreshDevice fresh;
  CHECK_THAT(fault_of<lane_outside_of_its_mask>({1, 32}),
             Contains("thread (16,0,0) at faults_test.cpp:") &&
                 Contains("__syncwarp: the mask leaves out the lane that calls"));
}

TEST_CASE("simt: a kernel that spins is stopped", "[simt]") {
  FreshDevice fresh;
  simt::settings().watchdog_seconds = 0.2;
  DeviceArray<int> flag(std::vector<int>{0});
  std::string text = fault_of<waits_for_a_flag>({1, 2}, flag.get());
  CHECK_THAT(text, Contains("waits_for_a_flag, block (0,0,0): thread (0,0,0): computes without "
                            "end: does it wait for another thread or block without a barrier?"));
  flag.forget();
  FreshDevice::reset();
  // In the other order the flag is set first: that it works now and then is no proof.
  simt::settings().order = simt::Order::reverse;
  DeviceArray<int> again(std::vector<int>{0});
  CHECK(fault_of<waits_for_a_flag>({1, 2}, again.get()) == "");
}

TEST_CASE("simt: a fault of one thread names it, and every later call fails", "[simt]") {
  FreshDevice fresh;
  CHECK_THAT(fault_of<traps>({2, 8}),
             Contains("thread (3,0,0) at faults_test.cpp:") && Contains("__trap()"));
  void* p = nullptr;
  CHECK(cudaMalloc(&p, 4) == cudaErrorLaunchFailure);
  CHECK(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);  // it stays
  CHECK(gpu::launch<traps>({1, 1}) == cudaErrorLaunchFailure);
  // The allocator must not take that for memory that has run out.
  const Device device(Device::cuda, 0);
  CHECK_THROWS_WITH(allocate(device, 4, Purpose::workspace),
                    Contains("cudaMalloc: kernel") && Contains("traps, block"));
  CHECK(memory_stats(device).live == 0);
  CHECK(cudaDeviceReset() == cudaSuccess);
  CHECK(cudaGetLastError() == cudaSuccess);
  DeviceArray<int> out(4);
  CHECK(fault_of<fine>({1, 4}, out.get()) == "");
}

TEST_CASE("simt: a misaligned vector access", "[simt]") {
  FreshDevice fresh;
  DeviceArray<float> in(8);
  DeviceArray<float4> out(1);
  CHECK_THAT(fault_of<misaligned>({1, 1}, in.get(), out.get()),
             Contains("thread (0,0,0) at faults_test.cpp:") && Contains("misaligned vector load"));
  in.forget();
  out.forget();
}

TEST_CASE("simt: a barrier that is missing shows in one order or another", "[simt]") {
  FreshDevice fresh;
  int wrong = 0;
  for (simt::Order order : kOrders) {
    simt::settings().order = order;
    std::vector<int> values(64);
    for (int i = 0; i < 64; ++i) values[size_t(i)] = i;
    DeviceArray<int> in(values), out(64);
    CHECK(fault_of<without_barrier>({1, 64}, in.get(), out.get()) == "");
    for (int i = 0; i < 64; ++i) wrong += out.values()[size_t(i)] != 63 - i;
  }
  CHECK(wrong > 0);
}

TEST_CASE("simt: memory that nobody has written is NaN", "[simt]") {
  FreshDevice fresh;
  DeviceArray<float> out(8), untouched(8);
  CHECK(fault_of<reads_what_nobody_wrote>({1, 8, 32}, out.get()) == "");
  for (float v : out.values()) CHECK(v != v);
  for (float v : untouched.values()) CHECK(v != v);
}

TEST_CASE("simt: copies that nobody waited for are told of", "[simt]") {
  FreshDevice fresh;
  DeviceArray<float> in(4);
  CHECK(fault_of<leaves_copies_behind>({1, 1, 16}, in.get()) == "");
  CHECK_THAT(simt::take_report(), Contains("ends with cp.async copies that nobody waited for"));
}

TEST_CASE("simt: a launch that no device would take", "[simt]") {
  FreshDevice fresh;
  DeviceArray<int> out(4);
  for (gpu::Config bad : {gpu::Config{0, 32}, gpu::Config{1, 0}, gpu::Config{1, 1025},
                          gpu::Config{dim3(1, 65536), 1}, gpu::Config{1, dim3(1, 1, 65)}}) {
    CHECK(gpu::launch<fine>(bad, out.get()) == cudaErrorInvalidConfiguration);
    CHECK_THAT(simt::take_report(), Contains("no device takes a grid of"));
  }
  CHECK(gpu::launch<fine>({1, 1, 49 << 10}, out.get()) == cudaErrorInvalidValue);
  CHECK_THAT(simt::take_report(), Contains("asks for 50176 bytes of shared memory, allowed are "
                                           "49152"));
  auto* function = reinterpret_cast<const void*>(fine);
  CHECK(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10) ==
        cudaSuccess);
  CHECK(gpu::launch<fine>({1, 1, 49 << 10}, out.get()) == cudaSuccess);
  CHECK(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, 228 << 10) ==
        cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaSuccess);
}
