// The engine itself: order, accumulation, freeing, grad modes, tg::grad, hooks.
#include <cmath>
#include <thread>

#include "catch.h"
#include "tapegrad/autograd/engine.h"
#include "tapegrad/autograd/grad_mode.h"
#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops.h"

using namespace tg;

namespace {
std::vector<double> values(const Tensor& x) { return x.to_vector<double>(); }
using V = std::vector<double>;
}  // namespace

TEST_CASE("a tensor used twice gets both gradients", "[autograd]") {
  Tensor x = tensor({2, 3}, f64).requires_grad_();
  Tensor y = x * x + 3 * x;
  sum(y).backward();
  CHECK(values(x.grad()) == V{7, 9});
}

TEST_CASE("order follows the recording, not the depth of a path", "[autograd]") {
  // A diamond with a long and a short side: the node in the middle must wait for both.
  Tensor x = tensor({1.5}, f64).requires_grad_();
  Tensor a = x * 2;
  Tensor b = a;
  for (int i = 0; i < 10; ++i) b = b + 0;
  sum(a * b).backward();
  CHECK(values(x.grad())[0] == Approx(8 * 1.5));
}

TEST_CASE("gradients accumulate over backwards until they are cleared", "[autograd]") {
  Tensor x = tensor({1, 2, 3}).requires_grad_();
  for (int i = 1; i <= 3; ++i) {
    sum(x * 2).backward();
    CHECK(values(x.grad()) == V{2.0 * i, 2.0 * i, 2.0 * i});
  }
  x.set_grad({});
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("two gradients never share memory", "[autograd][AUT-09]") {
  Tensor x = ones({3}).requires_grad_(), y = ones({3}).requires_grad_();
  Tensor seed = ones({});
  auto loss = [&] { return sum(x + y) + 3 * sum(x); };
  loss().backward(seed);
  CHECK(values(x.grad()) == V{4, 4, 4});
  CHECK(values(y.grad()) == V{1, 1, 1});
  loss().backward(seed);
  CHECK(values(x.grad()) == V{8, 8, 8});
  CHECK(values(y.grad()) == V{2, 2, 2});
  mul_(x.grad(), 0);
  CHECK(values(y.grad()) == V{2, 2, 2});
  CHECK(seed.item() == 1);
  Tensor z = ones({3}).requires_grad_();
  sum(z + z).backward();
  CHECK(values(z.grad()) == V{2, 2, 2});
}

TEST_CASE("a loss without history raises", "[autograd][AUT-13]") {
  Tensor x = ones({2});
  CHECK_THROWS_WITH(sum(x).backward(), Catch::Contains("no history"));
  Tensor w = ones({2}).requires_grad_();
  {
    NoGradGuard guard;
    CHECK_THROWS_AS(sum(w * 2).backward(), AutogradError);
  }
  CHECK_THROWS_AS(sum(w.detach() * 2).backward(), AutogradError);
  CHECK_THROWS_WITH((w * 2).backward(), Catch::Contains("more than one element"));
  CHECK_THROWS_AS((w * 2).backward(ones({3})), ShapeError);
}

TEST_CASE("running a graph twice needs retain_graph where something was saved", "[autograd]") {
  Tensor x = tensor({1, 2}, f64).requires_grad_();
  Tensor y = sum(exp(x));
  y.backward();
  CHECK_THROWS_WITH(y.backward(), Catch::Contains("retain_graph"));
  Tensor z = sum(exp(x));
  x.set_grad({});
  z.backward({}, true);
  z.backward();
  CHECK(values(x.grad())[0] == Approx(2 * std::exp(1.0)));
  // Views and sums save nothing, so a shared one may run again.
  Tensor shared = x.to(f64)[0] * 1 + 0;
  CHECK_NOTHROW(shared.backward());
}

TEST_CASE("grad returns instead of accumulating and runs only what lies between", "[autograd]") {
  Tensor x = tensor({2}, f64).requires_grad_(), w = tensor({3}, f64).requires_grad_();
  Tensor h = x * x, y = h * w;
  std::vector<Tensor> g = grad({sum(y)}, {x, h}, {.gradients = {}, .retain_graph = true});
  CHECK(values(g[0]) == V{12});
  CHECK(values(g[1]) == V{3});
  CHECK_FALSE(x.grad().defined());
  CHECK_FALSE(w.grad().defined());
  Tensor unused = tensor({1}, f64).requires_grad_();
  CHECK_THROWS_WITH(grad({sum(y)}, {unused}, {.gradients = {}, .retain_graph = true}),
                    Catch::Contains("allow_unused"));
  GradOptions allow;
  allow.allow_unused = true;
  CHECK_FALSE(grad(sum(y), unused, allow).defined());
}

TEST_CASE("braces around the arguments of grad make lists", "[autograd]") {
  Tensor x = tensor({{1, 2}, {3, 4}}, f64).requires_grad_();
  Tensor y = sum(x * x);
  GradOptions keep;
  keep.retain_graph = true;
  CHECK(values(grad({y}, {x}, keep)[0]) == V{2, 4, 6, 8});
  CHECK(grad({y}, {x}, keep).size() == 1);
  CHECK(values(grad(y, x, {.retain_graph = true})) == V{2, 4, 6, 8});
  CHECK(values(grad(y, x)[0]) == V{2, 4});  // of one of one, the first row
}

TEST_CASE("gradients of gradients", "[autograd][AUT-03]") {
  Tensor x = tensor({0}, f64).requires_grad_();
  Tensor y = pow(x, 4);
  GradOptions again;
  again.create_graph = true;
  for (int order = 1; order <= 4; ++order) y = grad(sum(y), x, again);
  CHECK(values(y)[0] == Approx(24));
  Tensor t = tensor({0.3}, f64).requires_grad_();
  Tensor first = grad(sum(tanh(t)), t, again);
  Tensor second = grad(sum(first), t);
  double th = std::tanh(0.3);
  CHECK(values(second)[0] == Approx(-2 * th * (1 - th * th)));
}

TEST_CASE("a chain of a million nodes runs and is freed", "[autograd]") {
  int64_t before = live_node_count();
  {
    Tensor x = tensor({1}).requires_grad_();
    Tensor y = x;
    for (int i = 0; i < 1000000; ++i) y = y + 0;
    sum(y).backward();
    CHECK(x.grad().item() == 1);
    Tensor z = x;
    for (int i = 0; i < 300000; ++i) z = exp(z * 0);  // chained through saved tensors too
  }
  CHECK(live_node_count() == before);
}

TEST_CASE("modes belong to the thread", "[autograd][AUT-11]") {
  Tensor w = ones({4}).requires_grad_();
  NoGradGuard guard;
  CHECK_FALSE((w * 2).requires_grad());
  bool recorded = false;
  std::thread([&] { recorded = (w * 2).requires_grad(); }).join();
  CHECK(recorded);  // a new thread records unless it sets the guard itself
  for (int64_t rows : {1000, 100000}) {
    Tensor big = ones({rows, 8});
    CHECK_FALSE((big * w[0]).requires_grad());
  }
}

TEST_CASE("backward uses the mode it was asked for, on any thread", "[autograd][AUT-11]") {
  Tensor x = tensor({2}, f64).requires_grad_();
  Tensor y = sum(x * x);
  std::thread([&] {
    NoGradGuard guard;
    y.backward({}, true, true);
  }).join();
  CHECK(x.grad().requires_grad());
  x.set_grad({});  // a recorded gradient leads back to its leaf, so the two would own each other
}

TEST_CASE("inference tensors take no part in recording", "[autograd]") {
  Tensor w = ones({2}).requires_grad_(), x;
  {
    InferenceGuard guard;
    x = ones({2}) * 2;
    CHECK_FALSE((w * x).requires_grad());
  }
  CHECK_THROWS_WITH(w * x, Catch::Contains("InferenceGuard"));
  CHECK_NOTHROW(x * 2);
}

TEST_CASE("hooks see and change the summed gradient", "[autograd]") {
  Tensor x = tensor({1, 2}, f64).requires_grad_();
  Tensor h = x * 2;
  int calls = 0;
  HookHandle handle = register_hook(h, [&](const Tensor& g) {
    ++calls;
    CHECK(values(g) == V{4, 4});
    return g * 10;
  });
  h.retain_grad();
  sum(h + 3 * h).backward();
  CHECK(calls == 1);
  CHECK(values(x.grad()) == V{80, 80});
  CHECK(values(h.grad()) == V{40, 40});
  x.set_grad({});
  Tensor k = x * 2;
  HookHandle removed = register_hook(k, [](const Tensor& g) { return g * 0; });
  removed.remove();
  sum(k).backward();
  CHECK(values(x.grad()) == V{2, 2});
  Tensor leaf_sum = tensor({1}, f64).requires_grad_();
  register_hook(leaf_sum, [](const Tensor& g) { return g + 1; });
  sum(leaf_sum * 3).backward();
  CHECK(values(leaf_sum.grad()) == V{4});
  Tensor bad = x * 1;
  register_hook(bad, [](const Tensor&) { return ones({5}, f64); });
  CHECK_THROWS_WITH(sum(bad).backward(), Catch::Contains("a hook returned"));
}

TEST_CASE("node hooks see what a backward made", "[autograd]") {
  Tensor a = tensor({2}, f64).requires_grad_(), b = tensor({5}, f64).requires_grad_();
  Tensor y = a * b;
  std::string name;
  double da = 0, db = 0;
  register_node_hook(y, [&](const Node& node, const Grads& grads) {
    name = node.op;
    da = grads[0].item();
    db = grads[1].item();
  });
  sum(y).backward();
  CHECK(name == "mul");
  CHECK(da == 5);
  CHECK(db == 2);
}

TEST_CASE("two threads that run backwards into one leaf lose nothing", "[autograd]") {
  Tensor w = zeros({64}, f64).requires_grad_();
  auto work = [&] {
    for (int i = 0; i < 200; ++i) sum(w * 1).backward();
  };
  std::thread other(work);
  work();
  other.join();
  CHECK(values(w.grad()) == V(64, 400.0));
}

TEST_CASE("a backward that gives the wrong number of gradients is named", "[autograd]") {
  Tensor x = ones({2}).requires_grad_();
  Op op("half_done");
  Tensor y = op.record(x.detach() * 2, {x}, [](const Tensor&, Needs) -> Grads { return {}; });
  CHECK_THROWS_WITH(sum(y).backward(), Catch::Contains("half_done backward"));
}
