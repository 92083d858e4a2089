// Random numbers with the CPU's bits: element i depends on the state and on i alone, and every step
// from the counter to the number rounds in one way only (core/philox.h). One thread computes one
// block of the generator, 16 bytes of floats or doubles.
#include "tapegrad/kernels/random.h"

#include "tapegrad/core/allocator.h"
#include "tapegrad/kernels/cuda/convert.cuh"
#include "tapegrad/kernels/cuda/start.cuh"
#include "tapegrad/kernels/largest_below.h"

namespace tg::kernels {
namespace {

struct Uniform {
  template <class D, int kCount>
  __device__ static void draw(const RandomBlock& block, D (&x)[kCount]) {
    uniform_block(block, x);
  }
};
struct Normal {
  template <class D, int kCount>
  __device__ static void draw(const RandomBlock& block, D (&x)[kCount]) {
    normal_block(block, x);
  }
};

// y[i] = finish(i, x), x the i-th number that Draw makes
template <class Draw, class T, class Finish>
__global__ void draw_kernel(RandomState state, Finish finish, T* y, int64_t numel) {
  using D = gpu::Computed<T>;
  constexpr int kCount = kPerBlock<D>;
  const int64_t blocks = (numel + kCount - 1) / kCount;
  for (int64_t b = gpu::first_index(); b < blocks; b += gpu::index_step()) {
    D x[kCount];
    Draw::draw(random_block(state, uint64_t(b)), x);
    for (int k = 0; k < kCount; ++k) {
      const int64_t i = b * kCount + k;
      if (i < numel) y[i] = finish(i, x[k]);
    }
  }
}

// [low, low + width), but not `top` or above by rounding: largest is the last value below it.
template <class T>
struct IntoRange {
  using D = gpu::Computed<T>;
  D low, width;
  T largest;
  __device__ T operator()(int64_t, D u) const {
    const T value = gpu::narrow<T>(low + u * width);
    return gpu::widen(value) < gpu::widen(largest) ? value : largest;
  }
};

template <class T>
struct Scaled {
  using D = gpu::Computed<T>;
  D mean, std;
  __device__ T operator()(int64_t, D z) const { return gpu::narrow<T>(mean + z * std); }
};

// 1 with probability chance[i].
template <class T>
struct Coin {
  using D = gpu::Computed<T>;
  const T* chance;
  __device__ T operator()(int64_t i, D u) const {
    return gpu::narrow<T>(D(u < gpu::widen(chance[i])));
  }
};

template <class T>
__global__ void randint_kernel(RandomState state, int64_t low, uint64_t range, T* y,
                               int64_t numel) {
  for (int64_t b = gpu::first_index(); b < (numel + 1) / 2; b += gpu::index_step()) {
    const RandomBlock block = random_block(state, uint64_t(b));
    for (int k = 0; k < 2; ++k) {
      const int64_t i = 2 * b + k;
      if (i >= numel) break;
      const uint64_t wide = block.wide(k);
      const int64_t value = int64_t(uint64_t(low) + (range ? uniform_below(wide, range) : wide));
      if constexpr (std::is_arithmetic_v<T>)
        y[i] = T(value);
      else
        y[i] = gpu::narrow<T>(float(value));
    }
  }
}

// Becomes 1 if a probability lies outside of [0,1] or is NaN.
template <class T>
__global__ void check_chances_kernel(const T* chance, int64_t numel, int* bad) {
  for (int64_t i = gpu::first_index(); i < numel; i += gpu::index_step()) {
    const auto c = gpu::widen(chance[i]);
    if (!(c >= 0 && c <= 1)) *bad = 1;
  }
}

template <class Draw, class T, class Finish>
void draw(const RandomState& state, const Finish& finish, MutView y) {
  if (y.numel == 0) return;
  const int64_t blocks = blocks_for(y.numel, kPerBlock<gpu::Computed<T>>);
  gpu::start<draw_kernel<Draw, T, Finish>>({gpu::blocks_for_each(blocks), gpu::kThreads}, state,
                                           finish, y.as<T>(), y.numel);
}

}  // namespace

void uniform(Cuda, MutView y, double low, double high, const RandomState& state) {
  visit_any_float(y.dtype, [&]<class T>() {
    using D = gpu::Computed<T>;
    const T top = high > low ? largest_below<T>(high) : T(D(low));
    draw<Uniform, T>(state, IntoRange<T>{D(low), D(high - low), top}, y);
  });
}

void normal(Cuda, MutView y, double mean, double std, const RandomState& state) {
  visit_any_float(y.dtype, [&]<class T>() {
    using D = gpu::Computed<T>;
    draw<Normal, T>(state, Scaled<T>{D(mean), D(std)}, y);
  });
}

void randint(Cuda, MutView y, int64_t low, uint64_t range, const RandomState& state) {
  if (y.numel == 0) return;
  visit_all(y.dtype, [&]<class T>() {
    gpu::start<randint_kernel<T>>({gpu::blocks_for_each(y.numel / 2 + 1), gpu::kThreads}, state,
                                  low, range, y.as<T>(), y.numel);
  });
}

void bernoulli(Cuda, View p, MutView y, const RandomState& state) {
  if (y.numel == 0) return;
  visit_any_float(p.dtype, [&]<class T>() {
    const Device device = cuda::current_device();
    Workspace flag(sizeof(int), device);
    int bad = 0;
    cuda::copy(device, flag.as<int>(), kCpuDevice, &bad, sizeof bad);
    gpu::start<check_chances_kernel<T>>({gpu::blocks_for_each(p.numel), gpu::kThreads}, p.as<T>(),
                                        p.numel, flag.as<int>());
    cuda::copy(kCpuDevice, &bad, device, flag.as<int>(), sizeof bad);
    check<ValueError>(!bad, "a probability lies in [0,1], got one outside of it");
    draw<Uniform, T>(state, Coin<T>{p.as<T>()}, y);
  });
}

}  // namespace tg::kernels
