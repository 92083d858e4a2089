// Sequences: element i is a function of i alone, computed by one thread.
#include "tapegrad/kernels/range.h"

#include "tapegrad/kernels/cuda/convert.cuh"
#include "tapegrad/kernels/cuda/start.cuh"
#include "tapegrad/kernels/dispatch.h"

namespace tg::kernels {
namespace {

// start + i step without rounding, around the end of the range where it leaves it.
struct IntegerSteps {
  uint64_t start, step;
  __device__ int64_t operator()(int64_t i) const { return int64_t(start + uint64_t(i) * step); }
};
struct RealSteps {
  double start, step;
  __device__ double operator()(int64_t i) const { return start + double(i) * step; }
};
// The second half is counted back from the end, so that the last element is the end itself.
struct BothEnds {
  double start, end, step;
  int64_t n;
  __device__ double operator()(int64_t i) const {
    return i < n / 2 || n == 1 ? start + double(i) * step : end - double(n - 1 - i) * step;
  }
};

template <class T, class ValueAt>
__global__ void range_kernel(ValueAt value_at, T* y, int64_t step, int64_t numel) {
  for (int64_t i = gpu::first_index(); i < numel; i += gpu::index_step()) {
    const auto v = value_at(i);
    if constexpr (std::is_arithmetic_v<T>)
      y[i * step] = T(v);
    else
      y[i * step] = gpu::narrow<T>(float(v));
  }
}

template <class T, class ValueAt>
void generate(const ValueAt& value_at, MutView y) {
  gpu::start<range_kernel<T, ValueAt>>({gpu::blocks_for_each(y.numel), gpu::kThreads}, value_at,
                                       y.as<T>(), y.stride(0), y.numel);
}

}  // namespace

void arange(Cuda, MutView y, Scalar start, Scalar step) {
  if (y.numel == 0) return;
  visit_all(y.dtype, [&]<class T>() {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      if (!start.is_floating() && !step.is_floating())
        return generate<T>(IntegerSteps{uint64_t(start.to_int64()), uint64_t(step.to_int64())}, y);
    generate<T>(RealSteps{start.to_double(), step.to_double()}, y);
  });
}

void linspace(Cuda, MutView y, double start, double end) {
  const int64_t n = y.numel;
  if (n == 0) return;
  const double step = n > 1 ? (end - start) / double(n - 1) : 0;
  visit_all(y.dtype, [&]<class T>() { generate<T>(BothEnds{start, end, step, n}, y); });
}

}  // namespace tg::kernels
