// Padding, NaN and infinities under a maximum.
#include <cmath>

#include "catch.h"
#include "tapegrad/autograd/ops.h"

using namespace tg;

namespace {

constexpr double kInf = INFINITY;

Tensor image(std::vector<double> values, int64_t h, int64_t w) {
  return tensor(values, {1, 1, h, w}).requires_grad_();
}

}  // namespace

TEST_CASE("max pooling: padding counts as -inf, not 0", "[faults][NUM-15]") {
  const Tensor y = max_pool2d(image({-1, -1, -1, -1}, 2, 2), 3, {.stride = 1, .padding = 1});
  CHECK(y.shape() == Shape{1, 1, 2, 2});
  CHECK(y.to_vector<double>() == std::vector<double>{-1, -1, -1, -1});
}

TEST_CASE("max pooling: NaN wins", "[faults][NUM-15]") {
  for (const std::vector<double>& values :
       {std::vector<double>{NAN, 0}, std::vector<double>{0, NAN}, std::vector<double>{NAN, kInf}}) {
    const Tensor x = image(values, 1, 2);
    const Tensor y = max_pool2d(x, {1, 2});
    CHECK(std::isnan(y.item()));
    sum(y).backward();
    CHECK(x.grad().to_vector<double>() ==
          (std::isnan(values[0]) ? std::vector<double>{1, 0} : std::vector<double>{0, 1}));
  }
}

TEST_CASE("max pooling: a window of -inf has a maximum, and it takes the gradient",
          "[faults][NUM-15]") {
  const Tensor x = image({-kInf, -kInf, -kInf, -kInf}, 2, 2);
  const Tensor y = max_pool2d(x, 2);
  CHECK(y.item() == -kInf);
  sum(y).backward();
  CHECK(x.grad().to_vector<double>() == std::vector<double>{1, 0, 0, 0});
}

TEST_CASE("max pooling: more padding than half of the kernel raises", "[faults][NUM-15]") {
  const Tensor x = image({1}, 1, 1);
  CHECK_THROWS_AS(max_pool2d(x, 3, {.stride = 3, .padding = 3}), ValueError);
}
