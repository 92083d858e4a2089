#include <variant>

#include "tapegrad/kernels/cpu/elementwise.h"
#include "tapegrad/kernels/unary.h"

namespace tg::kernels {

// A file of its own beside unary.cpp so that the two compile at the same time.
void unary_grad(Cpu, const functor::Unary& any, View saved, View dy, MutView dx) {
  std::visit(
      [&](const auto& functor) {
        using F = std::decay_t<decltype(functor)>;
        if constexpr (functor::Flat<F>)
          fail<InternalError>("a function with derivative 0 has no gradient kernel");
        else
          map(
              Cpu{}, [functor](auto s, auto d) { return functor.df(s, d); }, dx, saved, dy);
      },
      any);
}

}  // namespace tg::kernels
