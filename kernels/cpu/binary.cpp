#include "tapegrad/kernels/binary.h"

#include <variant>

#include "tapegrad/kernels/cpu/elementwise.h"
#include "tapegrad/kernels/cpu/scalar_view.h"

namespace tg::kernels {

void binary(Cpu, const functor::Binary& any, View a, View b, MutView y) {
  const View in[] = {a, b};
  std::visit(
      [&](const auto& functor) {
        using F = std::decay_t<decltype(functor)>;
        auto formula = [functor](auto u, auto v) { return functor.f(u, v); };
        auto run = [&]<class S>() { run_elementwise(make_run<S, 2>(formula), in, y); };
        if (is_floating(y.dtype)) return visit_compute_float(y.dtype, run);
        if constexpr (F::on_integers)
          visit_compute_integer(y.dtype, run);
        else
          fail<InternalError>("no such function of", y.dtype);
      },
      any);
}

void binary(Cpu, const functor::Binary& any, View a, Scalar b, MutView y) {
  ScalarView number(b);
  binary(Cpu{}, any, a, number.view(), y);
}

}  // namespace tg::kernels
