// The gradient scaler by its rules. All numbers are worked out by hand from the formulas in
// optim/grad_scaler.h; they are powers of two or exact in f64, so most comparisons are exact.
#include <cmath>
#include <limits>

#include "catch.h"
#include "error_text.h"
#include "tapegrad/autograd/autocast.h"
#include "tapegrad/autograd/engine.h"
#include "tapegrad/autograd/ops.h"
#include "tapegrad/nn/linear.h"
#include "tapegrad/optim/optim.h"
#include "temporary_folder.h"

using namespace tg;
using optim::GradScaler;
using test::error_text;

namespace {

Tensor numbers(const std::vector<double>& values, DType type = f64) {
  return tensor(values, {int64_t(values.size())}, type);
}

constexpr double kInf = std::numeric_limits<double>::infinity();

// One parameter with an SGD of its own.
struct Trained {
  nn::Parameter p;
  optim::SGD sgd;
  explicit Trained(std::vector<double> values, double lr, DType type = f64)
      : p(numbers(values, type)), sgd({p}, {.lr = lr}) {}
  void set_grad(const std::vector<double>& values) { p.set_grad(numbers(values, p.dtype())); }
  std::vector<double> value() const { return p.to_vector<double>(); }
  std::vector<double> grad() const { return p.grad().to_vector<double>(); }
};

}  // namespace

TEST_CASE("an overflow of one optimizer is its own, and halves the scale once", "[OPT-08]") {
  GradScaler scaler(
      {.init_scale = 8, .growth_factor = 2, .backoff_factor = 0.5, .growth_interval = 2});
  Trained a({1}, 0.1), b({1}, 0.1);
  a.set_grad({16});
  b.set_grad({kInf});
  CHECK(scaler.step(a.sgd));
  CHECK_FALSE(scaler.step(b.sgd));
  scaler.update();
  CHECK(a.value()[0] == Approx(0.8).epsilon(1e-15));
  CHECK(b.value()[0] == 1);
  CHECK(scaler.get_scale() == 4);
  CHECK(scaler.growth_tracker() == 0);
  for (double expected : {4.0, 8.0}) {
    a.set_grad({0});
    b.set_grad({0});
    CHECK(scaler.step(a.sgd));
    CHECK(scaler.step(b.sgd));
    scaler.update();
    CHECK(scaler.get_scale() == expected);
  }
}

TEST_CASE("a scaler refuses to do anything twice", "[OPT-08]") {
  GradScaler scaler;
  Trained a({1}, 0.1);
  CHECK(error_text([&] { scaler.update(); }).find("no optimizer was stepped") != std::string::npos);
  CHECK(error_text([&] { scaler.step(a.sgd); }).find("SGD has no gradients") != std::string::npos);
  a.set_grad({65536});
  scaler.unscale_(a.sgd);
  CHECK(a.grad()[0] == 1);
  CHECK(error_text([&] { scaler.unscale_(a.sgd); }).find("unscaled already") != std::string::npos);
  CHECK(scaler.step(a.sgd));
  CHECK(a.value()[0] == Approx(0.9).epsilon(1e-15));  // and not unscaled again
  CHECK(error_text([&] { scaler.step(a.sgd); }).find("stepped already") != std::string::npos);
  CHECK(error_text([&] { scaler.unscale_(a.sgd); }).find("before step") != std::string::npos);
  scaler.update();
  a.set_grad({65536});
  CHECK(scaler.step(a.sgd));
}

TEST_CASE("clipping sees true gradients, or step says that it did not", "[OPT-10]") {
  for (bool unscale : {true, false}) {
    GradScaler scaler({.init_scale = 1024});
    Trained a({0, 0}, 1);
    Tensor factors = numbers({3, 4});
    scaler.scale(sum(a.p * factors)).backward();
    CHECK(a.grad() == std::vector<double>{3072, 4096});
    if (unscale) {
      scaler.unscale_(a.sgd);
      CHECK(optim::clip_grad_norm_({a.p}, 1) == Approx(5).epsilon(1e-15));
      CHECK(scaler.step(a.sgd));
      scaler.update();
      // PyTorch divides by norm + 1e-6.
      CHECK(a.value()[0] == Approx(-3 / (5 + 1e-6)).epsilon(1e-14));
      CHECK(a.value()[1] == Approx(-4 / (5 + 1e-6)).epsilon(1e-14));
    } else {
      optim::clip_grad_norm_({a.p}, 1);
      CHECK(error_text([&] { scaler.step(a.sgd); }).find("unscale_(optimizer) before clipping") !=
            std::string::npos);
      CHECK(a.value() == std::vector<double>{0, 0});
      // The next iteration starts clean.
      a.sgd.zero_grad();
      scaler.scale(sum(a.p * factors)).backward();
      CHECK(scaler.step(a.sgd));
      CHECK(a.value() == std::vector<double>{-3, -4});
      scaler.update();
    }
  }
}

TEST_CASE("a schedule that waits for steps skips what the scaler skips", "[OPT-11]") {
  for (bool gated : {true, false}) {
    GradScaler scaler;
    nn::Parameter p(numbers({1}));
    optim::Adam adam({p}, {.lr = 1});
    optim::StepLR schedule(adam, {.step_size = 1, .gamma = 0.5});
    for (double g : {kInf, 1.0, 1.0}) {
      p.set_grad(numbers({g}));
      bool stepped = scaler.step(adam);
      CHECK(stepped == std::isfinite(g));
      scaler.update();
      if (stepped || !gated) schedule.step();
    }
    CHECK(adam.lr(0) == (gated ? 0.25 : 0.125));
    CHECK(adam.state_dict().integer("steps.0") == 2);  // those that the bias correction counts
  }
}

TEST_CASE("gradients that f16 alone would lose arrive through the scaler", "[optim]") {
  // d/dw of 2^-20 w x with x = 2^-10: 2^-30, which is 0 in f16; times 2^16 it is 2^-14.
  for (bool enabled : {true, false}) {
    GradScaler scaler({.enabled = enabled});
    nn::Linear layer(1, 1, {.bias = false});
    optim::SGD sgd(layer, {.lr = 1});
    Tensor x = full({1, 1}, std::ldexp(1, -10));
    Tensor y;
    {
      Autocast autocast(f16);
      y = layer(x);
    }
    REQUIRE(y.dtype() == f16);
    scaler.scale(sum(y.to(f32)) * std::ldexp(1, -20)).backward();
    CHECK(scaler.step(sgd));
    if (enabled) scaler.update();
    double g = layer.weight.grad().item();
    CHECK(g == (enabled ? std::ldexp(1, -30) : 0));
  }
}

TEST_CASE("a scaler's state goes through a checkpoint and wrong ones are refused", "[optim]") {
  TemporaryFolder folder;
  std::string path = folder / "run.safetensors";
  GradScaler saved({.init_scale = 32, .growth_factor = 4, .growth_interval = 3}), loaded;
  Trained a({1}, 0.1);
  a.set_grad({1});
  saved.step(a.sgd);
  saved.update();
  optim::save_checkpoint(path, {.scaler = &saved});
  optim::load_checkpoint(path, {.scaler = &loaded});
  CHECK(loaded.get_scale() == 32);
  CHECK(loaded.growth_tracker() == 1);
  for (int i = 0; i < 2; ++i) {
    a.set_grad({1});
    loaded.step(a.sgd);
    loaded.update();
  }
  CHECK(loaded.get_scale() == 128);
  CHECK_THROWS_AS(loaded.load_state_dict({}), ValueError);
  CHECK_THROWS_AS(GradScaler({.init_scale = 0}), ValueError);
  CHECK_THROWS_AS(GradScaler({.growth_factor = 1}), ValueError);
  CHECK_THROWS_AS(GradScaler({.backoff_factor = 1}), ValueError);
  CHECK_THROWS_AS(GradScaler({.growth_interval = 0}), ValueError);
  CHECK_THROWS_AS(saved.update(kInf), ValueError);
  Trained half({1}, 0.1, f16);
  half.set_grad({1});
  CHECK_THROWS_AS(saved.step(half.sgd), DTypeError);
}
