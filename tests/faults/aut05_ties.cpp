#include "catch.h"
#include "tapegrad/autograd/ops.h"

using namespace tg;

namespace {
using Values = std::vector<double>;
}

TEST_CASE("a tie shares the gradient, a place takes all of it", "[AUT-05]") {
  Tensor x = tensor({2, 5, 5}).requires_grad_();
  max(x).backward();
  CHECK(x.grad().to_vector<double>() == Values{0, 0.5, 0.5});
  x.set_grad(Tensor());
  sum(amax(x, {0})).backward();
  CHECK(x.grad().to_vector<double>() == Values{0, 0.5, 0.5});
  x.set_grad(Tensor());
  max(x, 0).first.backward();
  CHECK(x.grad().to_vector<double>() == Values{0, 1, 0});  // the first of them

  Tensor a = ones({3}).requires_grad_(), b = ones({3}).requires_grad_();
  sum(maximum(a, b)).backward();
  CHECK(a.grad().to_vector<double>() == Values(3, 0.5));
  CHECK(b.grad().to_vector<double>() == Values(3, 0.5));
  Tensor s = ones({3}).requires_grad_();
  sum(maximum(s, s)).backward();
  CHECK(s.grad().to_vector<double>() == Values(3, 1));

  Tensor row = ones({8}).requires_grad_();
  max(row).backward();
  CHECK(row.grad().to_vector<double>() == Values(8, 0.125));
  row.set_grad(Tensor());
  sum(amin(row, {0})).backward();
  CHECK(row.grad().to_vector<double>() == Values(8, 0.125));
  row.set_grad(Tensor());
  max(row, 0).first.backward();
  CHECK(row.grad().to_vector<double>() == Values{1, 0, 0, 0, 0, 0, 0, 0});
}
