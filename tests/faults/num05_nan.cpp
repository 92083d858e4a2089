#include <cmath>
#include <limits>

#include "catch.h"
#include "tapegrad/autograd/ops.h"

using namespace tg;

namespace {
const double kNan = std::nan(""), kInf = std::numeric_limits<double>::infinity();
}

TEST_CASE("the largest, the smallest and their places do not lose NaN", "[NUM-05]") {
  struct Case {
    std::vector<double> values;
    int64_t place;
  };
  const Case cases[] = {
      {{3, kNan, 1, 5}, 1}, {{kNan, 1, 2}, 0}, {{1, 2, kNan}, 2}, {{kInf, kNan, -kInf}, 1}};
  for (DType dtype : {f32, f64, f16, bf16})
    for (const Case& c : cases) {
      Tensor x = cast(tensor(c.values, {int64_t(c.values.size())}), dtype);
      CHECK(std::isnan(max(x).item()));
      CHECK(std::isnan(min(x).item()));
      CHECK(argmax(x).item_int64() == c.place);
      CHECK(argmin(x).item_int64() == c.place);
      auto [value, place] = max(x, 0);
      CHECK(std::isnan(value.item()));
      CHECK(place.item_int64() == c.place);
    }
}

TEST_CASE("one NaN in the middle of a long row is found", "[NUM-05]") {
  for (int64_t at : {0, 7, 2500, 4999})
    for (bool transposed : {false, true}) {
      std::vector<float> v(5000, 1.0f);
      v[size_t(at)] = std::nanf("");
      Tensor x = tensor(v, {5000});
      x = transposed ? expand(unsqueeze(x, 1), {5000, 3}) : unsqueeze(x, 0);
      int64_t dim = transposed ? 0 : 1;
      CHECK(std::isnan(select(amax(x, {dim}), 0, 0).item()));
      CHECK(std::isnan(select(amin(x, {dim}), 0, 0).item()));
      CHECK(select(argmin(x, dim), 0, 0).item_int64() == at);
      CHECK(select(argmax(x, dim), 0, 0).item_int64() == at);
    }
}

TEST_CASE("relu, clamp and maximum keep NaN, in packets and in their tails", "[NUM-05]") {
  for (DType dtype : {f32, f64, f16, bf16})
    for (int64_t n : {3, 40}) {
      Tensor x = full({n}, kNan, dtype);
      for (const Tensor& y : {relu(x), clamp(x, 0, 6), maximum(x, ones({n}, dtype)),
                              minimum(ones({n}, dtype), x), leaky_relu(x), sigmoid(x)})
        CHECK(all(isnan(y)).item() == 1);
    }
  Tensor y = relu(tensor({kNan, -1, 2}));
  CHECK(std::isnan(y[0].item()));
  CHECK(y[1].item() == 0);
  CHECK(y[2].item() == 2);
}
