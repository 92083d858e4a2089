#include <cmath>

#include "catch.h"
#include "tapegrad/autograd/ops.h"

// Not the whole namespace: std is an operator there.
using tg::cast, tg::DType, tg::f32, tg::f64, tg::norm, tg::ones, tg::sum, tg::tensor, tg::Tensor,
    tg::zeros;

namespace {
std::vector<double> gradient(const Tensor& x, const tg::Function<Tensor(const Tensor&)>& f) {
  x.requires_grad_();
  sum(f(x)).backward();
  return x.grad().to_vector<double>();
}
}  // namespace

TEST_CASE("norm and std have gradient 0 where they are 0", "[AUT-02]") {
  for (DType dtype : {f32, f64}) {
    auto rows = [](const Tensor& x) { return norm(x, 2, {1}); };
    std::vector<double> g = gradient(cast(tensor({{0, 0, 0}, {1, 2, 2}}), dtype), rows);
    for (int i : {0, 1, 2}) CHECK(g[size_t(i)] == 0);
    CHECK(g[3] == Approx(1.0 / 3));
    CHECK(g[4] == Approx(2.0 / 3));
    CHECK(g[5] == Approx(2.0 / 3));
    CHECK(gradient(cast(tensor({0, -2}), dtype), [](const Tensor& x) { return norm(x, 1); }) ==
          std::vector<double>{0, -1});
    CHECK(gradient(ones({4}, dtype), [](const Tensor& x) { return tg::std(x); }) ==
          std::vector<double>(4, 0));
    for (double p : {1.0, 1.5, 2.0, 3.0, double(INFINITY)})
      CHECK(gradient(zeros({5, 5}, dtype), [p](const Tensor& x) { return norm(x, p); }) ==
            std::vector<double>(25, 0));
  }
}
