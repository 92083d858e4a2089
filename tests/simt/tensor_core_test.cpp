// The warp's matrix instructions against plain loops, and copies that run beside the arithmetic.
#include <cmath>

#include "simt/device_array.h"

using namespace tg;
using namespace tg::test;

namespace {

// Small whole numbers, exact in every dtype, so that the order of a sum does not matter.
float value(int i, int j) { return float((7 * i + 3 * j) % 9 - 4); }

template <class T>
uint32_t pack(float low, float high) {
  T pair[2] = {T(low), T(high)};
  uint32_t word;
  std::memcpy(&word, pair, sizeof word);
  return word;
}

// d [16,8] = 1 + a b, the fragments as the PTX manual draws them for mma.m16n8k16.
template <class T>
__global__ void multiply(float* d) {
  const int lane = int(threadIdx.x), g = lane / 4, t = lane % 4;
  auto a = [](int i, int j) { return pack<T>(value(i, j), value(i, j + 1)); };
  auto b = [](int i, int j) { return pack<T>(value(i + 5, j), value(i + 6, j)); };
  uint32_t fa[4] = {a(g, 2 * t), a(g + 8, 2 * t), a(g, 2 * t + 8), a(g + 8, 2 * t + 8)};
  uint32_t fb[2] = {b(2 * t, g), b(2 * t + 8, g)};
  float fd[4] = {1, 1, 1, 1};
  gpu::mma<T>(fd, fa, fb);
  for (int e = 0; e < 4; ++e) d[(g + e / 2 * 8) * 8 + 2 * t + e % 2] = fd[e];
}

// Four matrices of 8 x 8 from shared memory, row r of matrix m at 16 (8 m + r) bytes.
template <bool kTransposed, unsigned kSkip = 0>
__global__ void load_four(uint32_t* out) {
  auto* tile = gpu::dynamic_shared<uint16_t>();
  for (int i = int(threadIdx.x); i < 256; i += 32) tile[i] = uint16_t(i);
  __syncwarp();
  uint32_t words[4];
  if (kTransposed)
    gpu::load_matrices_transposed(words, gpu::shared_address() + kSkip + 16 * threadIdx.x);
  else
    gpu::load_matrices(words, gpu::shared_address() + kSkip + 16 * threadIdx.x);
  for (int m = 0; m < 4; ++m) out[threadIdx.x * 4 + unsigned(m)] = words[m];
}

// Copies 7 of 8 floats in two groups, and waits for all but kLeft of the groups.
template <int kLeft>
__global__ void copy_beside(const float* in, float* out) {
  const uint32_t shared = gpu::shared_address();
  gpu::copy16_later(shared, in);
  gpu::close_copy_group();
  gpu::copy16_later(shared + 16, in + 4, 12);
  gpu::copy4_later(shared + 32, in + 7);
  gpu::close_copy_group();
  gpu::wait_for_copies<kLeft>();
  for (int i = 0; i < 9; ++i) out[i] = gpu::dynamic_shared<float>()[i];
  gpu::wait_for_copies<0>();
}

}  // namespace

TEMPLATE_TEST_CASE("simt: a matrix product of a warp", "[simt]", __half, __nv_bfloat16) {
  FreshDevice fresh;
  DeviceArray<float> d(16 * 8);
  for (simt::Order order : kOrders) {
    simt::settings().order = order;
    REQUIRE(gpu::launch<multiply<TestType>>({1, 32}, d.get()) == cudaSuccess);
    std::vector<float> got = d.values();
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 8; ++j) {
        float sum = 1;
        for (int k = 0; k < 16; ++k) sum += value(i, k) * value(k + 5, j);
        CHECK(got[size_t(8 * i + j)] == sum);
      }
  }
}

TEST_CASE("simt: matrices loaded from shared memory", "[simt]") {
  FreshDevice fresh;
  DeviceArray<uint32_t> out(128);
  REQUIRE(gpu::launch<load_four<false>>({1, 32, 512}, out.get()) == cudaSuccess);
  std::vector<uint32_t> rows = out.values();
  REQUIRE(gpu::launch<load_four<true>>({1, 32, 512}, out.get()) == cudaSuccess);
  std::vector<uint32_t> columns = out.values();
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t m = 0; m < 4; ++m) {
      // Element (r, c) of matrix m holds 64 m + 8 r + c.
      const uint32_t r = lane / 4, c = 2 * (lane % 4), first = 64 * m;
      CHECK(rows[lane * 4 + m] == ((first + 8 * r + c + 1) << 16 | (first + 8 * r + c)));
      CHECK(columns[lane * 4 + m] == ((first + 8 * (c + 1) + r) << 16 | (first + 8 * c + r)));
    }
}

TEST_CASE("simt: a copy beside the arithmetic lands when it is waited for", "[simt]") {
  FreshDevice fresh;
  DeviceArray<float> in(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}), out(9);
  REQUIRE(gpu::launch<copy_beside<0>>({1, 1, 48}, in.get(), out.get()) == cudaSuccess);
  CHECK(out.values() == std::vector<float>{1, 2, 3, 4, 5, 6, 7, 0, 8});
  // With one group still on its way, what it brings must not be there yet.
  REQUIRE(gpu::launch<copy_beside<1>>({1, 1, 48}, in.get(), out.get()) == cudaSuccess);
  std::vector<float> early = out.values();
  for (int i = 0; i < 9; ++i) CHECK(std::isnan(early[size_t(i)]) == (i >= 4));
  CHECK(simt::take_report() == "");
}

TEST_CASE("simt: matrix instructions refuse addresses that the device would", "[simt]") {
  FreshDevice fresh;
  DeviceArray<uint32_t> out(128);
  const gpu::Config one_warp{1, 32, 512};
  CHECK(gpu::launch<load_four<false, 16>>(one_warp, out.get()) == cudaErrorLaunchFailure);
  CHECK_THAT(simt::take_report(),
             Catch::Contains("ldmatrix: past the end of dynamic shared memory"));
  FreshDevice::reset();
  CHECK(gpu::launch<load_four<false, 8>>(one_warp, out.get()) == cudaErrorLaunchFailure);
  CHECK_THAT(simt::take_report(), Catch::Contains("ldmatrix: misaligned address"));
  out.forget();
}
