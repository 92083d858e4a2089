// In-place operators: right gradients on tensors and on views of them, and errors instead of wrong
// ones. Expected values were computed by hand.
#include <cmath>
#include <type_traits>

#include "catch.h"
#include "tapegrad/autograd/engine.h"
#include "tapegrad/autograd/grad_mode.h"
#include "tapegrad/autograd/gradcheck.h"
#include "tapegrad/autograd/ops.h"

using namespace tg;

namespace {
std::vector<double> values(const Tensor& x) { return x.to_vector<double>(); }
using V = std::vector<double>;
}  // namespace

TEST_CASE("in-place on a non-leaf", "[autograd][inplace][AUT-08]") {
  Tensor x = tensor({1, 2, 3}, f64).requires_grad_();
  Tensor z = x + 1;
  mul_(z, 2);
  sum(z).backward();
  CHECK(values(x.grad()) == V{2, 2, 2});
}

TEST_CASE("saved values that were changed raise", "[autograd][inplace][AUT-08]") {
  Tensor x = tensor({1, 2}, f64).requires_grad_();
  SECTION("an output") {
    Tensor y = exp(x);
    add_(y, 1);
    CHECK_THROWS_WITH(sum(y).backward(),
                      Catch::Contains("exp backward") &&
                          Catch::Contains("saved at version 1 and is now at version 2"));
  }
  SECTION("an input, through a view, under no-grad") {
    Tensor v = view(x, {2, 1});
    Tensor y = x * x;
    uint32_t saved = x.version();
    {
      NoGradGuard guard;
      mul_(v, 2);
    }
    CHECK(x.version() == saved + 1);
    CHECK_THROWS_WITH(sum(y).backward(),
                      Catch::Contains("mul backward") &&
                          Catch::Contains("saved at version " + std::to_string(saved) +
                                          " and is now at version " + std::to_string(saved + 1)));
  }
  SECTION("a weight, through its transpose") {
    Tensor w = ones({2, 2}, f64).requires_grad_();
    Tensor y = matmul(reshape(x, {1, 2}), w);
    {
      NoGradGuard guard;
      fill_(t(w), 0);
    }
    CHECK_THROWS_WITH(sum(y).backward(),
                      Catch::Contains("matmul backward") && Catch::Contains("is now at version"));
  }
  SECTION("a detached alias shares the version") {
    Tensor y = exp(x);
    add_(y.detach(), 1);
    CHECK_THROWS_WITH(sum(y).backward(),
                      Catch::Contains("exp backward") && Catch::Contains("is now at version"));
  }
}

TEST_CASE("writing through a view reaches the base", "[autograd][inplace]") {
  Tensor x = tensor({{1, 2}, {3, 4}}, f64).requires_grad_();
  Tensor base = x * 1;
  Tensor row = base[0];
  mul_(row, 10);
  CHECK(values(base) == V{10, 20, 3, 4});
  sum(base).backward();
  CHECK(values(x.grad()) == V{10, 10, 1, 1});
}

TEST_CASE("writing to the base reaches the views", "[autograd][inplace]") {
  Tensor x = tensor({1, 2, 3}, f64).requires_grad_();
  Tensor base = x * 1;
  Tensor tail = slice(base, 0, 1, 3);
  mul_(base, 5);
  sum(tail).backward();
  CHECK(values(x.grad()) == V{0, 5, 5});
}

// Each use of a view whose base was written views the base anew.
TEST_CASE("a view of a base that was written may be used more than once", "[autograd][inplace]") {
  Tensor x = tensor({1, 2, 3}, f64).requires_grad_();
  SECTION("each use alone") {
    Tensor base = x * 1;
    Tensor first = base[0];
    mul_(base, 2);
    Tensor y = first * 1, z = first * 1;
    (y + z).backward();
    CHECK(values(x.grad()) == V{4, 0, 0});
  }
  SECTION("reductions") {
    Tensor base = x * 1;
    Tensor tail = slice(base, 0, 1, 3);
    add_(base, 1);
    (sum(tail) + mean(tail)).backward();
    CHECK(values(x.grad()) == V{0, 1.5, 1.5});
  }
  SECTION("several outputs, a view of the view, and the base itself") {
    Tensor base = x * 1;
    Tensor tail = slice(base, 0, 1, 3), last = tail[1];
    exp_(base);
    std::vector<Tensor> parts = split(tail, {1, 1});
    (sum(base) + sum(tail) + sum(parts[0]) + parts[1][0] * 2 + last * last).backward();
    const double e1 = std::exp(1.0), e2 = std::exp(2.0), e3 = std::exp(3.0);
    V gradient = values(x.grad());
    REQUIRE(gradient.size() == 3);
    CHECK(gradient[0] == Approx(e1));
    CHECK(gradient[1] == Approx(3 * e2));
    CHECK(gradient[2] == Approx(4 * e3 + 2 * e3 * e3));
  }
}

TEST_CASE("a retained gradient is that of the tensor as it is now", "[autograd][inplace]") {
  Tensor a = tensor({1, 2}, f64).requires_grad_();
  Tensor b = a * 2;
  b.retain_grad();
  mul_(b, 3);
  sum(b * b).backward();
  CHECK(values(b.grad()) == V{12, 24});
  CHECK(values(a.grad()) == V{72, 144});
}

TEST_CASE("an expression is not assigned to", "[autograd][inplace]") {
  CHECK(std::is_assignable_v<Tensor&, Tensor>);
  CHECK_FALSE(std::is_assignable_v<Tensor, Tensor>);  // x[0] = y
  CHECK_FALSE(std::is_assignable_v<Tensor, const Tensor&>);
}

TEST_CASE("a view sees what another view wrote", "[autograd][inplace]") {
  Tensor x = tensor({1, 2, 3, 4}, f64).requires_grad_();
  Tensor w = tensor({7}, f64).requires_grad_();
  Tensor base = x * 1;
  Tensor left = slice(base, 0, 0, 3), right = slice(base, 0, 2, 4);
  mul_(left, w);
  CHECK(values(right) == V{21, 4});
  sum(right).backward();
  CHECK(values(x.grad()) == V{0, 0, 7, 1});
  CHECK(values(w.grad()) == V{3});
}

TEST_CASE("a base without history learns it through a view", "[autograd][inplace]") {
  Tensor base = zeros({2, 2}, f64);
  Tensor w = tensor({1, 2}, f64).requires_grad_();
  copy_(base[1], w);
  CHECK(base.requires_grad());
  sum(base * base).backward();
  CHECK(values(w.grad()) == V{2, 4});
}

TEST_CASE("gradcheck through in-place writes on views, first and second order",
          "[autograd][inplace]") {
  auto fn = [](const std::vector<Tensor>& in) {
    Tensor base = in[0] * in[0];
    Tensor part = transpose(slice(base, 1, 0, 2), 0, 1);
    mul_(part, in[1]);
    exp_(base[0]);
    return std::vector<Tensor>{base, part};
  };
  Tensor x = tensor({{0.3, -0.7, 1.1}, {0.2, 0.5, -0.4}}, f64).requires_grad_();
  Tensor w = tensor({{0.5, -1.2}, {0.8, 0.1}}, f64).requires_grad_();
  gradcheck(fn, {x, w});
  gradgradcheck(fn, {x, w});
}

TEST_CASE("what must not be written raises and changes nothing", "[autograd][inplace]") {
  Tensor w = ones({3}, f64).requires_grad_();
  CHECK_THROWS_WITH(add_(w, 1), Catch::Contains("a leaf that requires grad"));
  CHECK_THROWS_WITH(add_(slice(w, 0, 0, 2), 1), Catch::Contains("a leaf that requires grad"));
  CHECK(values(w) == V{1, 1, 1});
  Tensor v;
  {
    NoGradGuard guard;
    v = slice(w, 0, 0, 2);
    add_(v, 1);  // allowed here
  }
  CHECK(values(w) == V{2, 2, 1});
  CHECK_THROWS_WITH(add_(v, 1), Catch::Contains("no-grad"));
  Tensor plain = ones({4}, f64), plain_view;
  {
    NoGradGuard guard;
    plain_view = slice(plain, 0, 0, 2);
  }
  CHECK_NOTHROW(add_(plain_view, 1));  // nothing is recorded
  CHECK_THROWS_WITH(mul_(plain_view, slice(w, 0, 0, 2)), Catch::Contains("no-grad"));
  CHECK_THROWS_WITH(add_(expand(ones({1}), {4}), 1), Catch::Contains("share one place"));
  Tensor shifted = tensor({1, 2, 3, 4, 5});
  CHECK_THROWS_WITH(sub_(slice(shifted, 0, 1, 5), slice(shifted, 0, 0, 4)),
                    Catch::Contains("shares part of its memory"));
  CHECK(values(shifted) == V{1, 2, 3, 4, 5});
  Tensor columns = tensor({{1, 2}, {3, 4}});
  CHECK_NOTHROW(add_(select(columns, 1, 0), select(columns, 1, 1)));
  CHECK(values(columns) == V{3, 2, 7, 4});
}

TEST_CASE("loops with in-place writes do not grow", "[autograd][inplace][AUT-12]") {
  int64_t nodes = live_node_count();
  int64_t live = memory_stats().live;
  {
    Tensor w = ones({8}).requires_grad_();
    for (int round = 0; round < 100; ++round) {
      Tensor h = w * 1;
      Tensor v = slice(h, 0, 0, 7);
      Tensor tail = slice(h, 0, 1, 8);
      copy_(tail, maximum(tail, v.clone()));
      h = v = tail = {};
      CHECK(live_node_count() == nodes + 1);  // the leaf
      CHECK(memory_stats().live == live + 8 * 4);
    }
    for (int round = 0; round < 100; ++round) {
      sum(exp(w)).backward({}, false, true);
      w.set_grad({});
      CHECK(live_node_count() == nodes + 1);
      CHECK(memory_stats().live == live + 8 * 4);
    }
  }
  CHECK(live_node_count() == nodes);
  CHECK(memory_stats().live == live);
}

TEST_CASE("gradient buffers alive at one time stay few", "[autograd][AUT-12]") {
  const int64_t bytes = 8 << 20;
  Tensor x = ones({bytes / 4}).requires_grad_();
  Tensor y = x;
  for (int i = 0; i < 200; ++i) y = y * 1.0001;  // nothing is saved: a number times a tensor
  Tensor loss = sum(y);
  y = {};
  int64_t before = memory_stats().live;
  reset_peak_memory();
  loss.backward();
  CHECK(memory_stats().peak - before <= 4 * bytes);
  CHECK(memory_stats()[Purpose::gradient] <= bytes + 1024);
}
