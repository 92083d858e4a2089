// What a kernel may do, in any order of its threads: the results are those that CUDA promises.
#include <numeric>

#include "simt/device_array.h"

using namespace tg;
using namespace tg::test;

namespace {

__global__ void write_indices(unsigned* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  out[block * threads + thread] = block * threads + thread;
}

template <int kThreads>
__global__ void reverse_in_shared(const int* in, int* out) {
  __shared__ int tile[kThreads];
  tile[threadIdx.x] = in[blockIdx.x * kThreads + threadIdx.x];
  __syncthreads();
  out[blockIdx.x * kThreads + threadIdx.x] = tile[kThreads - 1 - threadIdx.x];
}

__global__ void reverse_in_dynamic_shared(const int* in, int* out) {
  int* tile = gpu::dynamic_shared<int>();
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}

__global__ void sum_of_block(const int* in, int* out) {
  __shared__ int part[32];
  int sum = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (int distance = 16; distance > 0; distance /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return;  // no barrier follows
  sum = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0;
  for (int distance = 16; distance > 0; distance /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

__global__ void shuffles(int* out) {
  const int lane = int(threadIdx.x);
  int* row = out + 5 * lane;
  row[0] = __shfl_sync(0xffffffffu, lane, 3);
  row[1] = __shfl_up_sync(0xffffffffu, lane, 2);
  row[2] = __shfl_down_sync(0xffffffffu, lane, 2);
  row[3] = __shfl_xor_sync(0xffffffffu, lane, 5, 8);
  row[4] = __shfl_down_sync(0xffffffffu, lane, 3, 8);
}

__global__ void votes(unsigned* out) {
  const unsigned lane = threadIdx.x;
  const unsigned even = __ballot_sync(0xffffffffu, lane % 2 == 0);
  const int some = __any_sync(0xffffffffu, lane == 7), all = __all_sync(0xffffffffu, lane < 31);
  const int count = __syncthreads_count(lane < 10), both = __syncthreads_and(lane < 64),
            either = __syncthreads_or(lane == 40);
  if (lane == 0) {
    const unsigned values[] = {even,           unsigned(some),  unsigned(all), unsigned(count),
                               unsigned(both), unsigned(either)};
    for (int i = 0; i < 6; ++i) out[i] = values[i];
  }
}

__global__ void halves_of_a_warp(int* out) {
  const int lane = int(threadIdx.x);
  const unsigned mask = lane < 16 ? 0x0000ffffu : 0xffff0000u;
  int value = lane;
  // The halves meet different numbers of times.
  for (int i = 0; i < (lane < 16 ? 1 : 3); ++i) value += __shfl_xor_sync(mask, value, 1);
  out[lane] = value;
}

__global__ void some_leave_early(int* out) {
  __shared__ int shared;
  if (threadIdx.x >= 40) return;  // legal since compute capability 7.0
  if (threadIdx.x == 0) shared = 7;
  __syncthreads();
  out[threadIdx.x] = shared;
}

__global__ void histogram(int* bins, float* sum, unsigned long long* wide) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  atomicAdd(&bins[i % 3], 1);
  atomicMax(&bins[3], i);
  atomicMin(&bins[4], i);
  atomicAdd(sum, 0.5f);
  atomicAdd(wide, 1ull << 33);
  atomicOr(&bins[5], 1 << (i % 8));
  if (atomicCAS(&bins[6], 0, i + 1) == 0) atomicExch(&bins[7], i + 1);
}

// The last block to finish sees what all others have written.
__global__ void last_block(const int* in, int* partial, unsigned* finished, int* out) {
  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = in[blockIdx.x];
    __threadfence();
    is_last = atomicAdd(finished, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last || threadIdx.x != 0) return;
  int sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += partial[i];
  *out = sum;
}

__global__ void small_functions(int* bits, float* numbers, const float* in) {
  const int values[] = {__popc(0xF0F0u),
                        __popcll(~0ull),
                        __clz(1),
                        __clz(0),
                        __ffs(0),
                        __ffs(12),
                        __float_as_int(1.0f),
                        int(__umulhi(~0u, 6u)),
                        int(__float_as_uint(2.0f)),
                        int(atomicAnd(bits, 0x3))};
  for (int i = 0; i < 10; ++i) bits[1 + i] = values[i];
  // A float stays one, where a double would hide what it rounds.
  static_assert(sizeof(exp(*in)) == 4 && sizeof(sqrt(*in)) == 4 && sizeof(fma(*in, *in, *in)) == 4);
  const float floats[] = {__int_as_float(0x40400000),
                          __uint_as_float(0xC0000000u),
                          __fmaf_rn(2, 3, 4),
                          rsqrtf(4),
                          float(rsqrt(16.0)),
                          __fdividef(9, 2),
                          __expf(0),
                          __logf(1),
                          __ldg(in),
                          __ldcs(in + 1)};
  for (int i = 0; i < 10; ++i) __stcs(numbers + i, floats[i]);
}

__constant__ int table[4];
__global__ void read_constant(int* out) { out[threadIdx.x] = table[threadIdx.x]; }

std::vector<int> counting(int n) {
  std::vector<int> v(static_cast<size_t>(n));
  std::iota(v.begin(), v.end(), 1);
  return v;
}

// Runs the checks in each order of threads, with blocks on several threads and on one.
template <class F>
void in_every_order(F check) {
  FreshDevice fresh;
  for (simt::Order order : kOrders)
    for (bool parallel : {false, true}) {
      simt::settings().order = order;
      simt::settings().parallel_blocks = parallel;
      INFO("order " << int(order) << ", parallel blocks " << parallel);
      check();
      CHECK(cudaGetLastError() == cudaSuccess);
      CHECK(simt::take_report() == "");
    }
}

}  // namespace

TEST_CASE("simt: every thread of a grid of three dimensions runs once", "[simt]") {
  in_every_order([] {
    DeviceArray<unsigned> out(2 * 3 * 4 * 5 * 6 * 7);
    gpu::launch<write_indices>({dim3(2, 3, 4), dim3(5, 6, 7)}, out.get());
    std::vector<unsigned> values = out.values();
    for (size_t i = 0; i < values.size(); ++i) REQUIRE(values[i] == i);
  });
}

TEST_CASE("simt: a barrier makes shared memory visible, blocks have their own", "[simt]") {
  in_every_order([] {
    DeviceArray<int> in(counting(10 * 96)), out(10 * 96);
    gpu::launch<reverse_in_shared<96>>({10, 96}, in.get(), out.get());
    std::vector<int> values = out.values();
    for (int b = 0; b < 10; ++b)
      for (int i = 0; i < 96; ++i) REQUIRE(values[size_t(b * 96 + i)] == b * 96 + 96 - i);
    DeviceArray<int> small(48);
    gpu::launch<reverse_in_dynamic_shared>({1, 48, 48 * sizeof(int)}, in.get(), small.get());
    for (int i = 0; i < 48; ++i) CHECK(small.values()[size_t(i)] == 48 - i);
  });
}

TEST_CASE("simt: shuffles and barriers add up a block", "[simt]") {
  in_every_order([] {
    DeviceArray<int> in(counting(3 * 256)), out(3);
    gpu::launch<sum_of_block>({3, 256}, in.get(), out.get());
    // 1 + ... + 256, and 256 * 256 more for each block before.
    CHECK(out.values() == std::vector<int>{32896, 98432, 163968});
  });
}

TEST_CASE("simt: shuffles read the lane that CUDA documents", "[simt]") {
  in_every_order([] {
    DeviceArray<int> out(32 * 5);
    gpu::launch<shuffles>({1, 32}, out.get());
    std::vector<int> v = out.values();
    for (int lane = 0; lane < 32; ++lane) {
      const int* row = &v[size_t(5 * lane)];
      CHECK(row[0] == 3);
      CHECK(row[1] == (lane >= 2 ? lane - 2 : lane));
      CHECK(row[2] == (lane < 30 ? lane + 2 : lane));
      CHECK(row[3] == (lane ^ 5));
      CHECK(row[4] == (lane % 8 < 5 ? lane + 3 : lane));
    }
  });
}

TEST_CASE("simt: votes of a warp and of a block", "[simt]") {
  in_every_order([] {
    DeviceArray<unsigned> out(6);
    gpu::launch<votes>({1, 64}, out.get());
    CHECK(out.values() == std::vector<unsigned>{0x55555555u, 1, 0, 10, 1, 1});
  });
}

TEST_CASE("simt: parts of a warp meet by their own masks", "[simt]") {
  in_every_order([] {
    DeviceArray<int> out(32);
    gpu::launch<halves_of_a_warp>({1, 32}, out.get());
    std::vector<int> v = out.values();
    for (int lane = 0; lane < 32; ++lane) {
      const int pair = lane + (lane ^ 1);
      CHECK(v[size_t(lane)] == (lane < 16 ? pair : 4 * pair));
    }
  });
}

TEST_CASE("simt: who has ended is not waited for at a barrier", "[simt]") {
  in_every_order([] {
    DeviceArray<int> out(std::vector<int>(64, 0));
    gpu::launch<some_leave_early>({1, 64}, out.get());
    std::vector<int> v = out.values();
    for (size_t i = 0; i < 64; ++i) CHECK(v[i] == (i < 40 ? 7 : 0));
  });
}

TEST_CASE("simt: atomic operations lose nothing", "[simt]") {
  in_every_order([] {
    DeviceArray<int> bins(std::vector<int>{0, 0, 0, -1, 1000000, 0, 0, 0});
    DeviceArray<float> sum(std::vector<float>{0});
    DeviceArray<unsigned long long> wide(std::vector<unsigned long long>{0});
    gpu::launch<histogram>({30, 100}, bins.get(), sum.get(), wide.get());
    std::vector<int> v = bins.values();
    CHECK((v[0] == 1000 && v[1] == 1000 && v[2] == 1000));
    CHECK((v[3] == 2999 && v[4] == 0 && v[5] == 255));
    CHECK(v[6] > 0);
    CHECK(v[6] == v[7]);
    CHECK(sum.values()[0] == 1500.0f);
    CHECK(wide.values()[0] == 3000ull << 33);
  });
}

TEST_CASE("simt: the last block to finish sees the others' results", "[simt]") {
  in_every_order([] {
    DeviceArray<int> in(counting(50)), partial(50), out(1);
    DeviceArray<unsigned> finished(std::vector<unsigned>{0});
    gpu::launch<last_block>({50, 64}, in.get(), partial.get(), finished.get(), out.get());
    CHECK(out.values()[0] == 1275);
  });
}

TEST_CASE("simt: bits and fast maths", "[simt]") {
  FreshDevice fresh;
  DeviceArray<int> bits(std::vector<int>(11, 0x6));
  DeviceArray<float> numbers(10), in(std::vector<float>{-7, 8});
  REQUIRE(gpu::launch<small_functions>({1, 1}, bits.get(), numbers.get(),
                                       static_cast<const float*>(in.get())) == cudaSuccess);
  CHECK(bits.values() ==
        std::vector<int>{0x2, 8, 64, 31, 32, 0, 3, 0x3f800000, 5, 0x40000000, 0x6});
  CHECK(numbers.values() == std::vector<float>{3, -2, 10, 0.5f, 0.25f, 4.5f, 1, 0, -7, 8});
}

TEST_CASE("simt: constant memory holds what was copied to it", "[simt]") {
  in_every_order([] {
    const int values[4] = {4, 3, 2, 1};
    CHECK(cudaMemcpyToSymbol(table, values, sizeof values, 0, cudaMemcpyHostToDevice) ==
          cudaSuccess);
    DeviceArray<int> out(4);
    gpu::launch<read_constant>({1, 4}, out.get());
    CHECK(out.values() == std::vector<int>{4, 3, 2, 1});
  });
}
