#include <cmath>

#include "catch.h"
#include "tapegrad/autograd/engine.h"
#include "tapegrad/autograd/ops.h"
#include "tapegrad/core/random.h"

using namespace tg;

TEST_CASE("dropout keeps the share it should, scaled, and drops the gradient alike") {
  manual_seed(3);
  const int64_t n = 100000;
  const Tensor x = full({n}, 3).requires_grad_();
  const Tensor y = dropout(x, 0.25);
  const double kept = sum(cast(ne(y, 0), f64)).item();
  CHECK(std::abs(kept - 0.75 * double(n)) < 5 * std::sqrt(0.75 * 0.25 * double(n)));
  CHECK(max(y).item() == 4);
  sum(y * y).backward();  // 2 y / (1 - p) where kept
  CHECK(allclose(x.grad(), y.detach() * (2 / 0.75)));
  CHECK(!equal(dropout(x.detach(), 0.25), dropout(x.detach(), 0.25)));
}

TEST_CASE("dropout goes by the place of an element, not by the layout or the dtype") {
  const Tensor x = ones({6, 10});
  const auto drop = [](const Tensor& t) {
    manual_seed(5);
    return cast(ne(dropout(t, 0.5), 0), i64);
  };
  const Tensor expected = drop(x);
  CHECK(equal(drop(transpose(contiguous(transpose(x, 0, 1)), 0, 1)), expected));
  CHECK(equal(drop(expand(ones({6, 1}), {6, 10})), expected));
  for (DType t : {f64, f16, bf16}) CHECK(equal(drop(cast(x, t)), expected));
}

TEST_CASE("dropout of attention weights: the backward sees the weights that the forward saw") {
  // With v the unit matrix the output is the weights themselves; with dy = 1 on one row, the
  // gradient of v is that row of weights in every column.
  const int64_t keys = 37;
  manual_seed(11);
  const Tensor q = randn({5, 4}, {f64}), k = randn({keys, 4}, {f64});
  const Tensor v = eye(keys, {f64}).requires_grad_();
  const Tensor weights = scaled_dot_product_attention(q, k, v, {.dropout = 0.4});
  const Tensor plain = scaled_dot_product_attention(q, k, v);
  const Tensor kept = ne(weights.detach(), 0);
  CHECK(sum(cast(kept, i64)).item() < 5 * keys);
  CHECK(allclose(weights.detach(), where(kept, plain.detach() / 0.6, 0)));
  const Tensor row = zeros({5, keys}, {f64});
  fill_(select(row, 0, 3), 1);
  weights.backward(row);
  for (int64_t column : {int64_t{0}, keys - 1})
    CHECK(allclose(select(v.grad(), 1, column), select(weights.detach(), 0, 3)));
}
