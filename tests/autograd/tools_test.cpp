// What stands on the engine: checkpoint, anomaly mode, explain_grad, jacobian, gradcheck, autocast.
#include <cmath>

#include "catch.h"
#include "tapegrad/autograd/autocast.h"
#include "tapegrad/autograd/checkpoint.h"
#include "tapegrad/autograd/engine.h"
#include "tapegrad/autograd/explain.h"
#include "tapegrad/autograd/functional.h"
#include "tapegrad/autograd/grad_mode.h"
#include "tapegrad/autograd/gradcheck.h"
#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops.h"
#include "tapegrad/core/random.h"
#include "tapegrad/nn/nn.h"

using namespace tg;

namespace {
std::vector<double> values(const Tensor& x) { return x.to_vector<double>(); }
using V = std::vector<double>;

// Three deep, inside a vector and a Sequential.
struct Inner : nn::Module {
  nn::Sequential body{nn::Linear(4, 4), nn::Tanh(), nn::Linear(4, 4)};
  TG_MODULE(body)
  Tensor forward(const Tensor& x) { return body(x); }
};
struct Outer : nn::Module {
  std::vector<Inner> blocks;
  nn::Linear head{4, 2};
  Outer() {
    blocks.emplace_back();
    blocks.emplace_back();
  }
  TG_MODULE(blocks, head)
  Tensor forward(Tensor x) {
    for (Inner& b : blocks) x = b(x);
    return head(x);
  }
};
}  // namespace

TEST_CASE("checkpoint gives the same gradients, with the same random numbers",
          "[autograd][checkpoint]") {
  manual_seed(3);
  Tensor w = randn({16, 16}, f64).requires_grad_();
  Tensor data = randn({8, 16}, f64);
  auto block = [&](const Tensor& x) { return dropout(tanh(matmul(x, w)), 0.5, true); };
  auto run = [&](bool save_memory, bool input_grad) {
    Tensor x = data.clone();
    if (input_grad) x.requires_grad_();
    w.set_grad({});
    manual_seed(11);
    Tensor h = save_memory ? checkpoint(block, x) : block(x);
    Tensor loss = sum(dropout(h, 0.3, true) * h);
    loss.backward();
    std::vector<double> all = values(w.grad());
    if (input_grad)
      for (double v : values(x.grad())) all.push_back(v);
    all.push_back(loss.item());
    return all;
  };
  CHECK(run(true, true) == run(false, true));
  CHECK(run(true, false) == run(false, false));
  double after_checkpoint = (run(true, true), rand({1}, f64).item());
  double after_plain = (run(false, true), rand({1}, f64).item());
  CHECK(after_checkpoint == after_plain);  // the training's own numbers go on undisturbed
}

TEST_CASE("checkpoint refuses what it cannot do", "[autograd][checkpoint]") {
  Tensor x = ones({2}, f64).requires_grad_();
  auto square_it = [](const Tensor& v) { return v * v; };
  CHECK_THROWS_WITH(grad(sum(checkpoint(square_it, x)), x), Catch::Contains("checkpoint"));
  CHECK_THROWS_WITH(sum(checkpoint(square_it, x)).backward({}, false, true),
                    Catch::Contains("second derivatives"));
  NoGradGuard guard;
  CHECK_FALSE(checkpoint(square_it, x).requires_grad());
}

TEST_CASE("checkpoint keeps only its inputs", "[autograd][checkpoint]") {
  Tensor x = ones({1 << 16}).requires_grad_();
  auto deep = [](const Tensor& v) {
    Tensor h = v;
    for (int i = 0; i < 10; ++i) h = exp(h * 0.1);
    return h;
  };
  int64_t before = memory_stats().live;
  Tensor kept = deep(x);
  int64_t plain = memory_stats().live - before;
  kept = checkpoint(deep, x);
  CHECK(memory_stats().live - before <= plain / 5);
}

TEST_CASE("anomaly mode names the operator and the module", "[autograd][anomaly]") {
  AnomalyGuard guard;
  SECTION("forward") {
    Tensor x = tensor({-1, 2}).requires_grad_();
    CHECK_THROWS_WITH(log(x), Catch::Contains("log: made NaN or Inf"));
  }
  SECTION("backward") {
    Tensor x = tensor({0, 1}).requires_grad_();
    Tensor y = sum(sqrt(x));  // finite, but its derivative at 0 is not
    CHECK_THROWS_WITH(y.backward(), Catch::Contains("sqrt backward: made NaN or Inf"));
  }
  SECTION("backward inside modules") {
    Outer net;
    Tensor y = net(ones({3, 4}));
    Tensor bad = full({3, 2}, INFINITY);
    CHECK_THROWS_WITH(y.backward(bad), Catch::Contains("head (Linear): linear backward"));
    Tensor h = net.blocks[1](net.blocks[0](ones({3, 4})));
    register_hook(h, [](const Tensor& g) { return full(g.shape(), INFINITY); });
  }
  SECTION("infinities that come in are not the operator's fault") {
    Tensor scores = masked_fill(ones({2, 2}), tensor({{0, 1}, {0, 0}}).to(boolean), -INFINITY);
    CHECK_NOTHROW(softmax(scores + 1, 1));
  }
}

TEST_CASE("a wrong shape three deep says where", "[autograd][nn]") {
  Outer net;
  CHECK_THROWS_WITH(net(ones({3, 5})), Catch::StartsWith("blocks.0.body.0 (Linear): linear: ") &&
                                           Catch::Contains("[3,5]"));
}

TEST_CASE("out of memory says who asked", "[autograd][memory]") {
  Outer net;
  set_memory_limit(memory_stats().live + (1 << 20));
  std::string what;
  try {
    net(ones({1000, 4}));
    net.head(ones({1 << 17, 4}));
  } catch (const OutOfMemoryError& e) {
    what = e.what();
  }
  set_memory_limit(0);
  CHECK(what.find('\n') == std::string::npos);
  CHECK(what.find("MiB") != std::string::npos);
}

TEST_CASE("explain_grad tells what reaches a parameter", "[autograd][explain]") {
  Tensor used = tensor({1, 2}, f64).requires_grad_();
  Tensor cut = tensor({3, 4}, f64).requires_grad_();
  Tensor dead = tensor({5, 6}, f64).requires_grad_();
  Tensor frozen = tensor({7, 8}, f64);
  Tensor loss = sum(used * cut.detach() + relu(dead * -1) + frozen);
  GradReport report =
      explain_grad(loss, {{"used", used}, {"cut", cut}, {"dead", dead}, {"frozen", frozen}});
  CHECK(report.entries[0].state == GradState::ok);
  CHECK(report.entries[0].norm == Approx(5));
  CHECK(report.entries[1].state == GradState::unreached);
  CHECK(report.entries[2].state == GradState::zero);
  CHECK(report.entries[3].state == GradState::not_required);
  CHECK_FALSE(report.healthy());
  CHECK(report.text().find("cut: no gradient") != std::string::npos);
  CHECK(report.text().find("mul, input 1") != std::string::npos);
  CHECK_FALSE(used.grad().defined());
  CHECK_NOTHROW(loss.backward());  // the tape is still there
  Tensor bad = sum(log(used - 1));
  CHECK(explain_grad(bad, {{"used", used}}).entries[0].state == GradState::not_finite);
  CHECK(explain_grad(sum(frozen), {{"used", used}}).entries[0].state == GradState::unreached);
}

TEST_CASE("jacobian and hessian", "[autograd][functional]") {
  Tensor x = tensor({1, 2, 3}, f64);
  Tensor j = jacobian([](const Tensor& v) { return v * v; }, x);
  CHECK(values(j) == V{2, 0, 0, 0, 4, 0, 0, 0, 6});
  // f = x0 x1 + x2^3: second derivatives by hand.
  Tensor h = hessian([](const Tensor& v) { return v[0] * v[1] + pow(v[2], 3); }, x);
  CHECK(values(h) == V{0, 1, 0, 1, 0, 0, 0, 0, 18});
  CHECK(values(jacobian([](const Tensor& v) { return v.detach(); }, x)) == V(9, 0.0));
}

TEST_CASE("gradcheck finds a wrong backward", "[autograd][gradcheck]") {
  auto wrong = [](const std::vector<Tensor>& in) {
    Op op("wrong");
    Tensor x = op.in(in[0]);
    return std::vector<Tensor>{
        op.record(x.detach() * 3, {x}, [](const Tensor& dy, Needs) -> Grads { return {dy * 2}; })};
  };
  Tensor x = tensor({1, 2}, f64).requires_grad_();
  CHECK_THROWS_WITH(gradcheck(wrong, {x}), Catch::Contains("input 0 element 0"));
  CHECK_THROWS_AS(gradcheck(wrong, {tensor({1}, f32).requires_grad_()}), DTypeError);
  auto half_right = [](const std::vector<Tensor>& in) {  // right, but its backward is not recorded
    Op op("half_right");
    Tensor a = op.in(in[0]);
    return std::vector<Tensor>{op.record(a.detach() * a.detach(), {a},
                                         [a = Saved::input(a)](const Tensor& dy, Needs) -> Grads {
                                           return {dy * a.get().detach() * 2};
                                         })};
  };
  CHECK_NOTHROW(gradcheck(half_right, {x}));
  CHECK_THROWS_WITH(gradgradcheck(half_right, {x}), Catch::Contains("gradcheck: input 0"));
}

TEST_CASE("autocast casts by the operators' rules and back", "[autograd][autocast]") {
  Tensor w = ones({4, 4}).requires_grad_(), x = ones({2, 4});
  Autocast region(bf16);
  Tensor y = matmul(x, w);
  CHECK(y.dtype() == bf16);
  CHECK(softmax(y, 1).dtype() == f32);
  sum(y.to(f32)).backward();
  CHECK(w.grad().dtype() == f32);
  CHECK(values(w.grad()) == V(16, 2.0));
  Autocast off(bf16, false);
  CHECK(matmul(x, w).dtype() == f32);
  CHECK_THROWS_AS(Autocast(f64), DTypeError);
}

TEST_CASE("batch norm takes low precision as it comes, with statistics in f32", "[autocast]") {
  manual_seed(2);
  Tensor x = randn({4, 3, 5, 5}) * 3 + 100, weight = randn({3}), bias = randn({3});
  Tensor low = x.to(bf16);
  BatchNormOptions training;
  training.training = true;
  // What f32 makes of the rounded input, rounded once.
  Tensor mean = zeros({3}), var = ones({3});
  Tensor expected = batch_norm(low.to(f32), mean, var, weight, bias, training).to(bf16);
  nn::BatchNorm2d norm(3);
  copy_(norm.weight.detach(), weight);
  copy_(norm.bias.detach(), bias);
  Autocast region(bf16);
  Tensor y = norm(low);
  CHECK(y.dtype() == bf16);
  CHECK(equal(y, expected));
  CHECK(norm.running_mean.dtype() == f32);
  CHECK(equal(norm.running_mean, mean));
  CHECK(equal(norm.running_var, var));
  sum(y.to(f32)).backward();
  CHECK(norm.weight.grad().dtype() == f32);
  CHECK(norm(x).dtype() == f32);  // and f32 too
}
