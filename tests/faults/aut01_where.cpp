#include <cmath>
#include <limits>

#include "catch.h"
#include "tapegrad/autograd/engine.h"
#include "tapegrad/autograd/ops.h"

using namespace tg;

TEST_CASE("the branch of where that was not taken gets exactly 0", "[AUT-01]") {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  Tensor c = cast(tensor({1, 0}), boolean);
  Tensor a = tensor({1, nan}).requires_grad_(), b = tensor({nan, 2}).requires_grad_();
  Tensor y = where(c, a, b);
  CHECK(y.to_vector<double>() == std::vector<double>{1, 2});
  y.backward(tensor({inf, inf}));
  CHECK(a.grad().to_vector<double>() == std::vector<double>{inf, 0});
  CHECK(b.grad().to_vector<double>() == std::vector<double>{0, inf});
}

// Without the second guard the chain rule gives 0 * inf = NaN, as in PyTorch: the branch is 0 where
// it was not taken, and exp multiplies that 0 by e^100.
TEST_CASE("a guarded formula: one guard gives NaN, two give the derivative", "[AUT-01]") {
  Tensor x = full({1}, 100).requires_grad_();
  Tensor y = where(x <= 0, exp(x), 1 + x);
  CHECK(y.item() == 101);
  y.backward();
  CHECK(std::isnan(x.grad().item()));

  Tensor z = full({1}, 100).requires_grad_();
  Tensor safe = where(z <= 0, z, 0);
  where(z <= 0, exp(safe), 1 + z).backward();
  CHECK(z.grad().item() == 1);
}
