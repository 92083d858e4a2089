#include "tapegrad/kernels/unary.h"

#include <cmath>
#include <variant>

#include "tapegrad/kernels/cpu/elementwise.h"

namespace tg::kernels {

void unary(Cpu, const functor::Unary& any, View x, MutView y) {
  std::visit(
      [&](const auto& functor) {
        using F = std::decay_t<decltype(functor)>;
        auto formula = [functor](auto v) { return functor.f(v); };
        auto run = [&]<class S>() { run_elementwise(make_run<S, 1>(formula), {&x, 1}, y); };
        if (is_floating(x.dtype)) return visit_compute_float(x.dtype, run);
        if constexpr (functor::OnIntegers<F>)
          visit_compute_integer(x.dtype, run);
        else
          fail<InternalError>("no such function of", x.dtype);
      },
      any);
}

namespace {

template <class S>
bool answer(Test question, S v) {
  switch (question) {
    case Test::nan:
      return v != v;
    case Test::inf:
      return std::abs(v) == std::numeric_limits<S>::infinity();
    case Test::finite:
      return std::abs(v) < std::numeric_limits<S>::infinity();
    default:
      return v == 0;
  }
}

template <class S, Test kQuestion>
RunKernel test_kernel() {
  RunKernel k;
  k.formula = nullptr;
  k.in[0] = dtype_of<S>();
  k.out = DType::boolean;
  k.run = [](const void*, const void* const* in, const int64_t* step, void* out, int64_t n) {
    const S* x = static_cast<const S*>(in[0]);
    bool* y = static_cast<bool*>(out);
    for (int64_t i = 0; i < n; ++i) y[i] = answer(kQuestion, x[i * step[0]]);
  };
  return k;
}

template <class S>
RunKernel test_kernel(Test question) {
  switch (question) {
    case Test::nan:
      return test_kernel<S, Test::nan>();
    case Test::inf:
      return test_kernel<S, Test::inf>();
    case Test::finite:
      return test_kernel<S, Test::finite>();
    default:
      return test_kernel<S, Test::zero>();
  }
}

}  // namespace

void test(Cpu, Test question, View x, MutView y) {
  // An integer becomes a double, which keeps all that is asked of it.
  RunKernel k = x.dtype == DType::f64 || !is_floating(x.dtype) ? test_kernel<double>(question)
                                                               : test_kernel<float>(question);
  run_elementwise(k, {&x, 1}, y);
}

}  // namespace tg::kernels
