// Elementwise functions of two operands, comparisons, logic and choices. The formulas are the
// functors of kernels/binary_ops.h; kernels/cuda/elementwise.cuh runs them.
#include "tapegrad/kernels/binary.h"

#include <variant>

#include "tapegrad/kernels/cuda/elementwise.cuh"
#include "tapegrad/kernels/cuda/integers.cuh"
#include "tapegrad/kernels/mask.h"

namespace tg::kernels {
namespace {

using gpu::Operand;

void run_binary(const functor::Binary& any, Operand a, Operand b, MutView y) {
  std::visit(
      [&]<class F>(const F& functor) {
        if (is_floating(y.dtype)) return gpu::map_floats<gpu::Value<F>, 2>({functor}, {a, b}, y);
        if (y.numel == 0) return;
        if constexpr (F::on_integers)
          gpu::compute_integer(y.dtype, [&]<class S>() {
            gpu::strided<gpu::OfLanes<gpu::Value<F>>, S, S, S>({{functor}}, {a, b}, y);
          });
        else
          fail<InternalError>("no such function of", y.dtype);
      },
      any);
}

template <Compare kHow>
struct Comparison {
  template <class S>
  __device__ bool operator()(S a, S b) const {
    switch (kHow) {
      case Compare::eq:
        return a == b;
      case Compare::ne:
        return a != b;
      case Compare::lt:
        return a < b;
      case Compare::le:
        return a <= b;
      case Compare::gt:
        return a > b;
      default:
        return a >= b;
    }
  }
};

template <Compare kHow>
void run_comparison(Operand a, Operand b, MutView y) {
  using C = Comparison<kHow>;
  const DType t = a.view.dtype;
  if (t == DType::f64) return gpu::strided<C, bool, double, double>({}, {a, b}, y);
  if (is_floating(t)) return gpu::strided<C, bool, float, float>({}, {a, b}, y);
  gpu::compute_integer(t, [&]<class S>() { gpu::strided<C, bool, S, S>({}, {a, b}, y); });
}

void run_compare(Compare how, Operand a, Operand b, MutView y) {
  if (y.numel == 0) return;
  switch (how) {
    case Compare::eq:
      return run_comparison<Compare::eq>(a, b, y);
    case Compare::ne:
      return run_comparison<Compare::ne>(a, b, y);
    case Compare::lt:
      return run_comparison<Compare::lt>(a, b, y);
    case Compare::le:
      return run_comparison<Compare::le>(a, b, y);
    case Compare::gt:
      return run_comparison<Compare::gt>(a, b, y);
    default:
      return run_comparison<Compare::ge>(a, b, y);
  }
}

struct Logic {
  Logical how;
  __device__ bool operator()(bool a, bool b) const {
    return how == Logical::and_ ? a && b : how == Logical::or_ ? a || b : a != b;
  }
};

// Only moves elements, so it knows them by their bits.
struct Choice {
  template <class Bits>
  __device__ Bits operator()(bool condition, Bits a, Bits b) const {
    return condition ? a : b;
  }
};

}  // namespace

void binary(Cuda, const functor::Binary& f, View a, View b, MutView y) { run_binary(f, a, b, y); }
void binary(Cuda, const functor::Binary& f, View a, Scalar b, MutView y) { run_binary(f, a, b, y); }

void compare(Cuda, Compare how, View a, View b, MutView y) { run_compare(how, a, b, y); }
void compare(Cuda, Compare how, View a, Scalar b, MutView y) { run_compare(how, a, b, y); }

void logical(Cuda, Logical how, View a, View b, MutView y) {
  if (y.numel > 0) gpu::strided<Logic, bool, bool, bool>({how}, {a, b}, y);
}

void where(Cuda, View condition, View a, View b, MutView y) {
  if (y.numel == 0) return;
  visit_bytes(y.dtype, [&]<class Bits>() {
    gpu::strided<Choice, Bits, bool, Bits, Bits>({}, {condition, a, b}, y);
  });
}

}  // namespace tg::kernels
