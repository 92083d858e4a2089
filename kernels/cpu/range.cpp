#include "tapegrad/kernels/range.h"

#include "tapegrad/core/parallel.h"

namespace tg::kernels {
namespace {

constexpr int64_t kGrain = 1 << 15;

template <class T, class F>
void generate(MutView y, F value_at) {
  T* data = y.as<T>();
  int64_t step = y.stride(0);
  parallel_for(y.numel, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) data[i * step] = value_at(i);
  });
}

}  // namespace

void arange(Cpu, MutView y, Scalar start, Scalar step) {
  visit_all(y.dtype, [&]<class T>() {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      if (!start.is_floating() && !step.is_floating()) {
        auto a = uint64_t(start.to_int64()), s = uint64_t(step.to_int64());
        return generate<T>(y, [=](int64_t i) { return T(a + uint64_t(i) * s); });
      }
    }
    double a = start.to_double(), s = step.to_double();
    generate<T>(y, [=](int64_t i) {
      double v = a + double(i) * s;
      if constexpr (std::is_arithmetic_v<T>)
        return T(v);
      else
        return T(float(v));
    });
  });
}

void linspace(Cpu, MutView y, double start, double end) {
  int64_t n = y.numel;
  double step = n > 1 ? (end - start) / double(n - 1) : 0;
  visit_all(y.dtype, [&]<class T>() {
    generate<T>(y, [=](int64_t i) {
      double v = i < n / 2 || n == 1 ? start + double(i) * step : end - double(n - 1 - i) * step;
      if constexpr (std::is_arithmetic_v<T>)
        return T(v);
      else
        return T(float(v));
    });
  });
}

}  // namespace tg::kernels
