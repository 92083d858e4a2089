// The instrumented flavour: this file is compiled so that every access of its kernels is seen.
#include "tapegrad/kernels/simt/hooks/hooks.h"
#include "simt/device_array.h"

using namespace tg;
using namespace tg::test;
using Catch::Contains;

namespace {

template <bool kBarrier>
__global__ void neighbour(const float* in, float* out) {
  __shared__ float tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  if (kBarrier) __syncthreads();
  out[threadIdx.x] = tile[(threadIdx.x + 33) % 64];
}

// A shuffle orders no memory; __syncwarp does.
template <bool kSync>
__global__ void within_a_warp(const float* in, float* out) {
  __shared__ float tile[32];
  tile[threadIdx.x] = in[threadIdx.x];
  __shfl_sync(0xffffffffu, 0, 0);
  if (kSync) __syncwarp();
  out[threadIdx.x] = tile[31 - threadIdx.x];
}

// The barrier at the end of a loop that fills a tile again.
template <bool kBarrier>
__global__ void fills_again(const float* in, float* out) {
  __shared__ float tile[64];
  float sum = 0;
  for (int step = 0; step < 2; ++step) {
    tile[threadIdx.x] = in[threadIdx.x + step];
    __syncthreads();
    sum += tile[63 - threadIdx.x];
    if (kBarrier) __syncthreads();
  }
  out[threadIdx.x] = sum;
}

__global__ void never_written(float* out) {
  __shared__ float tile[64];
  if (threadIdx.x < 32) tile[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];
}

__global__ void two_blocks(int* out) { *out = int(blockIdx.x); }
__global__ void two_blocks_atomic(int* out) { atomicAdd(out, 1); }
// Thread 0 reads, which is not atomic.
__global__ void reads_beside_atomics(int* out, int* seen) {
  if (threadIdx.x == 0)
    *seen = *out;
  else
    atomicAdd(out, 1);
}
__global__ void past_dynamic_shared() { gpu::dynamic_shared<int>()[threadIdx.x] = 1; }

__global__ void host_memory(const float* in, float* out) { *out = *in; }

template <int kPitch>
__global__ void transpose(const float* in, float* out) {
  __shared__ float tile[32][kPitch];
  const unsigned x = threadIdx.x, y = threadIdx.y;
  tile[y][x] = in[32 * y + x];
  __syncthreads();
  out[32 * y + x] = tile[x][y];
}

__global__ void strided_read(const float* in, float* out) {
  out[threadIdx.x] = in[8 * threadIdx.x];
}
__global__ void vector_read(const float4* in, float4* out) { out[threadIdx.x] = in[threadIdx.x]; }

struct Watched {
  FreshDevice fresh;
  Watched() {
    simt::hooks::clear_costs();
    simt::hooks::start();
  }
  ~Watched() { simt::hooks::stop(); }
};

template <auto kKernel, class... Args>
std::string findings(gpu::Config c, Args... args) {
  CHECK(gpu::launch<kKernel>(c, args...) == cudaSuccess);
  return simt::take_report();
}

}  // namespace

TEST_CASE("hooks: a race in shared memory names both lines", "[hooks]") {
  Watched watched;
  for (simt::Order order : kOrders) {
    simt::settings().order = order;
    simt::hooks::clear_costs();
    DeviceArray<float> in(65), out(64);
    CHECK(findings<neighbour<true>>({1, 64}, in.get(), out.get()) == "");
    CHECK_THAT(findings<neighbour<false>>({1, 64}, in.get(), out.get()),
               Contains("neighbour<false>: shared memory race: ") && Contains("hooks_test.cpp:") &&
                   Contains("is not ordered after the"));
  }
}

TEST_CASE("hooks: within a warp __syncwarp orders memory, a shuffle does not", "[hooks]") {
  Watched watched;
  DeviceArray<float> in(32), out(32);
  CHECK(findings<within_a_warp<true>>({1, 32}, in.get(), out.get()) == "");
  CHECK_THAT(findings<within_a_warp<false>>({1, 32}, in.get(), out.get()),
             Contains("shared memory race"));
}

TEST_CASE("hooks: the barrier before a tile is filled again", "[hooks]") {
  Watched watched;
  DeviceArray<float> in(65), out(64);
  CHECK(findings<fills_again<true>>({1, 64}, in.get(), out.get()) == "");
  CHECK_THAT(findings<fills_again<false>>({1, 64}, in.get(), out.get()),
             Contains("shared memory race: write at hooks_test.cpp:"));
}

TEST_CASE("hooks: shared memory that nobody wrote", "[hooks]") {
  Watched watched;
  DeviceArray<float> out(64);
  CHECK_THAT(findings<never_written>({1, 64}, out.get()),
             Contains("reads shared memory that nobody wrote, at hooks_test.cpp:") &&
                 Contains("by thread 32"));
}

TEST_CASE("hooks: blocks are not ordered, atomic operations are", "[hooks]") {
  Watched watched;
  DeviceArray<int> out(std::vector<int>{0});
  CHECK(findings<two_blocks>({1, 1}, out.get()) == "");
  CHECK_THAT(
      findings<two_blocks>({2, 1}, out.get()),
      Contains("global memory race: write at hooks_test.cpp:") && Contains("of another block"));
  CHECK(findings<two_blocks_atomic>({5, 64}, out.get()) == "");
}

TEST_CASE("hooks: a read beside an atomic operation is a race, whichever comes first", "[hooks]") {
  Watched watched;
  for (simt::Order order : kOrders) {
    simt::settings().order = order;
    simt::hooks::clear_costs();
    DeviceArray<int> out(std::vector<int>{0}), seen(1);
    CHECK_THAT(
        findings<reads_beside_atomics>({1, 2}, out.get(), seen.get()),
        Contains("global memory race: ") && Contains("by thread 0") && Contains("by thread 1"));
  }
}

TEST_CASE("hooks: an access past the end of dynamic shared memory", "[hooks]") {
  Watched watched;
  CHECK(findings<past_dynamic_shared>({1, 4, 16}) == "");
  CHECK_THAT(findings<past_dynamic_shared>({1, 5, 16}),
             Contains("access past the end of dynamic shared memory, at hooks_test.cpp:"));
}

TEST_CASE("hooks: an access outside of device memory", "[hooks]") {
  Watched watched;
  std::vector<float> host(1, 2.0f);
  DeviceArray<float> out(1);
  CHECK_THAT(findings<host_memory>({1, 1}, static_cast<const float*>(host.data()), out.get()),
             Contains("read outside of device memory, at hooks_test.cpp:"));
}

TEST_CASE("hooks: bank conflicts are counted", "[hooks]") {
  Watched watched;
  DeviceArray<float> in(1024), out(1024);
  findings<transpose<32>>({1, dim3(32, 32)}, in.get(), out.get());
  findings<transpose<33>>({1, dim3(32, 32)}, in.get(), out.get());
  // Half of the requests write rows, without conflict; the others read columns, 32 passes each.
  CHECK(simt::hooks::bank_conflicts("transpose<32>") == 16.5);
  CHECK(simt::hooks::bank_conflicts("transpose<33>") == 1.0);
  CHECK_THAT(simt::hooks::cost_table("transpose<32>"),
             Contains("shared load    4 bytes") && Contains("32.0 lanes, bank passes x32.00"));
}

TEST_CASE("hooks: scattered accesses are counted", "[hooks]") {
  Watched watched;
  DeviceArray<float> in(256), out(32);
  DeviceArray<float4> wide(32), wide_out(32);
  findings<strided_read>({1, 32}, in.get(), out.get());
  findings<vector_read>({1, 32}, static_cast<const float4*>(wide.get()), wide_out.get());
  // 32 sectors instead of 4 for the read, 4 for the write: 36 instead of 8.
  CHECK(simt::hooks::scattered("strided_read") == 4.5);
  CHECK(simt::hooks::scattered("vector_read") == 1.0);
}
