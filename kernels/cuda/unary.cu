// Elementwise functions of one operand: y = f(x), dx = df(saved, dy), and questions like isnan.
// The formulas are the functors of kernels/unary_ops.h; kernels/cuda/elementwise.cuh runs them.
#include "tapegrad/kernels/unary.h"

#include <variant>

#include "tapegrad/kernels/cuda/elementwise.cuh"
#include "tapegrad/kernels/cuda/integers.cuh"

namespace tg::kernels {
namespace {

template <class F>
struct Slope {
  F functor;
  template <class S>
  __device__ S operator()(S saved, S dy) const {
    return functor.df(saved, dy);
  }
};

struct IsNan {
  template <class S>
  __device__ bool operator()(S x) const {
    return x != x;
  }
};
struct IsInf {
  template <class S>
  __device__ bool operator()(S x) const {
    return x == std::numeric_limits<S>::infinity() || x == -std::numeric_limits<S>::infinity();
  }
};
struct IsFinite {
  template <class S>
  __device__ bool operator()(S x) const {
    return x < std::numeric_limits<S>::infinity() && x > -std::numeric_limits<S>::infinity();
  }
};
struct IsZero {
  template <class S>
  __device__ bool operator()(S x) const {
    return x == 0;
  }
};

// Integers are finite numbers: only zero asks for their value.
template <class Question>
void ask(const Question& question, View x, MutView y) {
  if (x.dtype == DType::f64) return gpu::strided<Question, bool, double>(question, {x}, y);
  if (is_floating(x.dtype)) return gpu::strided<Question, bool, float>(question, {x}, y);
  gpu::compute_integer(x.dtype, [&]<class S>() {
    gpu::strided<gpu::OfInteger<Question>, bool, S>({question}, {x}, y);
  });
}

}  // namespace

void unary(Cuda, const functor::Unary& any, View x, MutView y) {
  std::visit(
      [&]<class F>(const F& functor) {
        if (is_floating(x.dtype)) return gpu::map_floats<gpu::Value<F>, 1>({functor}, {x}, y);
        if (y.numel == 0) return;
        if constexpr (functor::OnIntegers<F>)
          gpu::compute_integer(x.dtype, [&]<class S>() {
            gpu::strided<gpu::OfLanes<gpu::Value<F>>, S, S>({{functor}}, {x}, y);
          });
        else
          fail<InternalError>("no such function of", x.dtype);
      },
      any);
}

void unary_grad(Cuda, const functor::Unary& any, View saved, View dy, MutView dx) {
  std::visit(
      [&]<class F>(const F& functor) {
        if constexpr (functor::Flat<F>)
          fail<InternalError>("a function with derivative 0 has no gradient kernel");
        else
          gpu::map_floats<Slope<F>, 2>({functor}, {saved, dy}, dx);
      },
      any);
}

void test(Cuda, Test question, View x, MutView y) {
  if (y.numel == 0) return;
  switch (question) {
    case Test::nan:
      return ask(IsNan(), x, y);
    case Test::inf:
      return ask(IsInf(), x, y);
    case Test::finite:
      return ask(IsFinite(), x, y);
    default:
      return ask(IsZero(), x, y);
  }
}

}  // namespace tg::kernels
