#include <cmath>
#include <limits>

#include "catch.h"
#include "tapegrad/autograd/engine.h"
#include "tapegrad/autograd/ops.h"

using namespace tg;

namespace {
struct Slopes {
  double a, b;
};
Slopes slopes(double a, double b) {
  Tensor x = full({1}, a, f64).requires_grad_(), y = full({1}, b, f64).requires_grad_();
  pow(x, y).backward();
  return {x.grad().item(), y.grad().item()};
}
double slope(double a, Scalar b) {
  Tensor x = full({1}, a, f64).requires_grad_();
  pow(x, b).backward();
  return x.grad().item();
}
}  // namespace

TEST_CASE("powers of zero and of negative numbers have the limits as derivatives", "[AUT-03]") {
  CHECK(slopes(0, 1).b == 0);
  CHECK(slopes(2, 1).b == Approx(1.3862943611198906));
  CHECK(slopes(0, 0).b == 0);
  CHECK(slopes(0, 0).a == 0);
  CHECK(slopes(0, 2).a == 0);
  CHECK(slopes(0, 0.5).a == std::numeric_limits<double>::infinity());
  CHECK(slopes(-2, 2).a == -4);
  CHECK(std::isnan(slopes(-2, 2).b));
  CHECK(slope(0, 0) == 0);
  CHECK(slope(0, 0.0) == 0);
  CHECK(slope(0, 2) == 0);
  CHECK(slope(0, 0.5) == std::numeric_limits<double>::infinity());
  CHECK(slope(-2, 2) == -4);
}

TEST_CASE("the fourth derivative of x^4 at 0 is 24", "[AUT-03]") {
  Tensor x = zeros({1}, f64).requires_grad_();
  Tensor y = pow(x, 4);
  for (int i = 0; i < 4; ++i) y = grad(y, x, {.create_graph = true});
  CHECK(y.item() == 24);
}
