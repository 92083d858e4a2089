#include <cmath>

#include "catch.h"
#include "tapegrad/autograd/ops.h"

using namespace tg;

namespace {

double value(double x, DType dtype, Gelu form) { return gelu(full({1}, x, dtype), form).item(); }
double slope(double x, DType dtype, Gelu form) {
  Tensor t = full({1}, x, dtype).requires_grad_();
  gelu(t, form).backward();
  return t.grad().item();
}
// In double, by forms that do not cancel.
double exact(double x, Gelu form) {
  if (form == Gelu::erf) return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
  double u = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
  return x / (1 + std::exp(-2 * u));
}

}  // namespace

TEST_CASE("gelu of moderately large numbers is a number, and right in the tail", "[NUM-08]") {
  CHECK(value(11, f32, Gelu::tanh) == 11);
  CHECK(value(15.5, f32, Gelu::tanh) == 15.5);
  CHECK(value(11, f32, Gelu::erf) == 11);
  CHECK(value(15.5, f32, Gelu::erf) == 15.5);
  CHECK(value(-4, f32, Gelu::tanh) == Approx(-7.0246e-5).epsilon(1e-4));
  CHECK(value(-6, f32, Gelu::tanh) == Approx(-8.4396e-11).epsilon(1e-4));
  CHECK(value(-4, f32, Gelu::erf) == Approx(-1.26685e-4).epsilon(1e-4));
  CHECK(value(-6, f32, Gelu::erf) == Approx(-5.9195e-9).epsilon(1e-4));
  for (DType dtype : {f32, f64, f16, bf16})
    for (Gelu form : {Gelu::erf, Gelu::tanh})
      for (double x : {11.0, 15.5, -4.0, -6.0, -13.25}) {
        INFO(name_of(dtype) << " " << x);
        double y = value(x, dtype, form), right = exact(x, form);
        double epsilon = dtype == f16 ? 1e-3 : dtype == bf16 ? 8e-3 : 1e-5;
        // f16 ends at 6e-8: below that only the absolute error counts.
        CHECK(std::abs(y - right) <= epsilon * std::abs(right) + (dtype == f16 ? 1e-7 : 1e-37));
      }
}

TEST_CASE("the relative error of gelu stays small over the whole negative side", "[NUM-08]") {
  for (Gelu form : {Gelu::erf, Gelu::tanh})
    for (int i = 0; i <= 5000; ++i) {
      double x = double(float(-9 + i * 0.0036));
      double right = exact(x, form);
      REQUIRE(std::abs(value(x, f32, form) - right) <= 1e-5 * std::abs(right) + 1e-37);
    }
}

TEST_CASE("the derivative of gelu at the ends is 0 and 1", "[NUM-08]") {
  for (DType dtype : {f32, f64, bf16})
    for (Gelu form : {Gelu::erf, Gelu::tanh}) {
      CHECK(slope(1e20, dtype, form) == 1);
      CHECK(slope(-1e20, dtype, form) == 0);
      CHECK(slope(60, dtype, form) == 1);
      CHECK(std::abs(slope(-60, dtype, form)) == 0);
      CHECK(slope(0, dtype, form) == 0.5);
    }
}
