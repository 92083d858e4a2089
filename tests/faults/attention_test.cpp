// Softmax, attention and dropout as other engines got them wrong.
#include <cmath>

#include "catch.h"
#include "tapegrad/autograd/engine.h"
#include "tapegrad/autograd/ops.h"

using namespace tg;

namespace {

constexpr double kInf = INFINITY;

using Values = std::vector<double>;
Values values(const Tensor& x) { return x.to_vector<double>(); }

}  // namespace

TEST_CASE("a row that sees nothing spoils no other", "[NUM-02]") {
  const Tensor scores = tensor({{0, 0}, {-kInf, -kInf}}), v = tensor({{1, 2}, {3, 4}});
  const Values plain = values(matmul(softmax(scores, 1), v));
  CHECK((plain[0] == 2 && plain[1] == 3));
  CHECK((std::isnan(plain[2]) && std::isnan(plain[3])));
  {  // in the gradient too NaN stays in its row
    const Tensor x = scores.clone().requires_grad_();
    sum(matmul(softmax(x, 1), v)).backward();
    const Values g = values(x.grad());  // 0.5 (3 - 5) and 0.5 (7 - 5)
    CHECK((g[0] == -1 && g[1] == 1 && std::isnan(g[2]) && std::isnan(g[3])));
  }

  // The same scores as attention: q is 0, the mask hides both keys from the second query.
  for (const Tensor& mask : {scores, tensor<bool>({true, true, false, false}, {2, 2})}) {
    const Tensor q = zeros({2, 2}).requires_grad_(), k = ones({2, 2}).requires_grad_();
    const Tensor values_in = v.clone().requires_grad_();
    const Tensor y = scaled_dot_product_attention(q, k, values_in, {.mask = mask});
    CHECK(values(y) == Values{2, 3, 0, 0});
    sum(y).backward();
    CHECK(values(values_in.grad()) == Values{0.5, 0.5, 0.5, 0.5});
    CHECK(all(isfinite(q.grad())).item() == 1);
    CHECK(values(q.grad()[1]) == Values{0, 0});
    CHECK(all(isfinite(k.grad())).item() == 1);
  }
  // And through the path that makes a gradient for the mask.
  const Tensor mask = scores.clone().requires_grad_();
  const Tensor q = zeros({2, 2}).requires_grad_();
  sum(scaled_dot_product_attention(q, ones({2, 2}), v, {.mask = mask})).backward();
  CHECK(values(mask.grad()) == Values{-1, 1, 0, 0});
  CHECK(all(isfinite(q.grad())).item() == 1);
}

TEST_CASE("dropout of all, of nothing, and a bad probability", "[NUM-18]") {
  const auto input = [] { return tensor({1, -2, kInf}).requires_grad_(); };
  Tensor x = input();
  Tensor y = dropout(x, 1);
  CHECK(values(y) == Values{0, 0, 0});
  sum(y).backward();
  CHECK(values(x.grad()) == Values{0, 0, 0});
  for (bool training : {true, false}) {
    x = input();
    y = dropout(x, training ? 0 : 0.5, training);
    CHECK(values(y) == Values{1, -2, kInf});
    sum(y).backward();
    CHECK(values(x.grad()) == Values{1, 1, 1});
  }
  for (double p : {-0.1, 1.5, double(NAN)}) {
    CHECK_THROWS_AS(dropout(input(), p), ValueError);
    CHECK_THROWS_AS(dropout(input(), p, false), ValueError);
    CHECK_THROWS_AS(
        scaled_dot_product_attention(ones({2, 2}), ones({2, 2}), ones({2, 2}), {.dropout = p}),
        ValueError);
  }
}
