// Optimizers and schedules against PyTorch in float64; dtypes, layouts, threads.
#include <cmath>
#include <cstring>
#include <limits>

#include "nn/reference.h"
#include "tapegrad/core/parallel.h"
#include "tapegrad/optim/optim.h"

using namespace tg;
using test::distance;
using test::pattern;

namespace {

const test::Reference& reference() {
  static const test::Reference file("optim/optimizers.safetensors");
  return file;
}

template <class Optimizer, class Options>
void check_steps(const std::string& name, Options options) {
  nn::Parameter p(pattern({5, 7}, 1));
  Optimizer optimizer({p}, options);
  for (int i = 0; i < 5; ++i) {
    p.set_grad(pattern({5, 7}, 10 + i));
    optimizer.step();
    INFO(name << " step " << i);
    CHECK(distance(p, reference().get(name + "/" + std::to_string(i))) < 1e-14);
  }
}

template <class Schedule, class Options>
void check_schedule(const std::string& name, Options options) {
  nn::Parameter p(zeros({1}));
  optim::SGD sgd({p}, {.lr = 0.1});
  Schedule schedule(sgd, options);
  std::vector<double> expected = reference().get("schedule/" + name).to_vector<double>();
  for (double rate : expected) {
    INFO(name << " step " << schedule.step_count());
    CHECK(sgd.group(0).lr == Approx(rate).epsilon(1e-12).margin(1e-16));
    schedule.step();
  }
}

}  // namespace

TEST_CASE("optimizers agree with PyTorch", "[optim]") {
  check_steps<optim::SGD>("sgd", optim::SGDOptions{.lr = 0.1});
  check_steps<optim::SGD>("sgd_momentum",
                          optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01});
  check_steps<optim::SGD>("sgd_dampening",
                          optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.5});
  check_steps<optim::SGD>(
      "sgd_nesterov",
      optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
  check_steps<optim::SGD>("sgd_maximize",
                          optim::SGDOptions{.lr = 0.1, .weight_decay = 0.01, .maximize = true});
  check_steps<optim::Adam>("adam", optim::AdamOptions{.lr = 0.01});
  check_steps<optim::Adam>(
      "adam_decay", optim::AdamOptions{
                        .lr = 0.01, .beta1 = 0.8, .beta2 = 0.99, .eps = 1e-4, .weight_decay = 0.1});
  check_steps<optim::AdamW>("adamw", optim::AdamWOptions{.lr = 0.01});
  check_steps<optim::AdamW>("adamw_maximize",
                            optim::AdamWOptions{.lr = 0.01, .weight_decay = 0.1, .maximize = true});
}

TEST_CASE("schedules agree with PyTorch", "[optim]") {
  check_schedule<optim::StepLR>("StepLR", optim::StepLROptions{.step_size = 3, .gamma = 0.5});
  check_schedule<optim::LinearLR>("LinearLR",
                                  optim::LinearLROptions{.start_factor = 0.25, .total_steps = 6});
  check_schedule<optim::CosineLR>("CosineLR",
                                  optim::CosineLROptions{.total_steps = 10, .min_lr = 0.01});
  check_schedule<optim::CosineRestarts>(
      "CosineRestarts",
      optim::CosineRestartsOptions{.first_cycle = 4, .factor = 2, .min_lr = 0.01});
}

TEST_CASE("warmup rises evenly to the base rate", "[optim]") {
  nn::Parameter p(zeros({1}));
  optim::SGD sgd({p}, {.lr = 0.5});
  optim::CosineLR schedule(sgd, {.total_steps = 12, .warmup_steps = 4});
  for (double rate : {0.1, 0.2, 0.3, 0.4, 0.5}) {
    CHECK(sgd.group(0).lr == Approx(rate));
    schedule.step();
  }
  schedule.seek(8);  // half of the cosine
  CHECK(sgd.group(0).lr == Approx(0.25));
  CHECK_THROWS_AS(optim::CosineLR(sgd, {.total_steps = 4, .warmup_steps = 4}), ValueError);
  CHECK_THROWS_AS(optim::CosineLR(sgd, {}), ValueError);
}

TEST_CASE("16-bit parameters are computed in f32 and rounded once a step", "[optim]") {
  for (DType type : {f16, bf16}) {
    nn::Parameter p(full({33}, 1.0, type));
    optim::SGD sgd({p}, {.lr = 0.125});
    p.set_grad(full({33}, 0.5, type));
    sgd.step();
    CHECK(p.to_vector<double>() == std::vector<double>(33, 0.9375));  // exact in both
  }
}

TEST_CASE("a gradient of another layout is moved element by element", "[optim]") {
  Tensor start = pattern({2, 3, 4, 5}, 1, f32), g = pattern({2, 3, 4, 5}, 2, f32);
  nn::Parameter p(start.clone());
  p.set_grad(channels_last(g));
  optim::Adam adam({p}, {.lr = 0.1});
  adam.step();
  nn::Parameter q(start.clone());
  q.set_grad(g.clone());
  optim::Adam other({q}, {.lr = 0.1});
  other.step();
  CHECK(equal(p.detach(), q.detach()));
}

TEST_CASE("steps, norms and clipping have the same bits for any number of threads", "[optim]") {
  // More than three times what one thread takes, and ends inside of a block.
  constexpr int64_t kSize = 3 * 4 * 16384 + 11;
  auto run = [](int threads) {
    set_num_threads(threads);
    nn::Parameter a(pattern({kSize}, 1, f32)), b(pattern({77}, 2, f32));
    optim::AdamW adam({a, b}, {.lr = 0.01});
    std::vector<float> bytes;
    for (int i = 0; i < 3; ++i) {
      a.set_grad(pattern({kSize}, 3 + i, f32));
      b.set_grad(pattern({77}, 4 + i, f32));
      bytes.push_back(float(optim::clip_grad_norm_({a, b}, 1.0)));
      adam.step();
    }
    auto v = a.to_vector<float>(), w = b.to_vector<float>();
    bytes.insert(bytes.end(), v.begin(), v.end());
    bytes.insert(bytes.end(), w.begin(), w.end());
    return bytes;
  };
  int before = num_threads();
  std::vector<float> one = run(1);
  for (int threads : {2, 3, 7}) {
    std::vector<float> many = run(threads);
    REQUIRE(many.size() == one.size());
    CHECK(std::memcmp(many.data(), one.data(), one.size() * sizeof(float)) == 0);
  }
  set_num_threads(before);
}

TEST_CASE("groups have settings of their own", "[optim]") {
  nn::Linear a(2, 2), b(2, 2);
  optim::SGD sgd(a, {.lr = 0.1});
  sgd.add_group(optim::Parameters(std::vector<Tensor>{b.weight}), {.lr = 1});
  for (const Tensor& x : {Tensor(a.weight), Tensor(b.weight)}) x.set_grad(ones({2, 2}));
  fill_(a.weight.detach(), 0);
  fill_(b.weight.detach(), 0);
  sgd.group(1).lr = 2;
  sgd.step();
  CHECK(a.weight.to_vector<double>()[0] == Approx(-0.1));
  CHECK(b.weight.to_vector<double>()[0] == -2);
  CHECK(sgd.group_count() == 2);
  CHECK(sgd.parameters(0).size() == 2);
  CHECK(sgd.parameters().size() == 3);
  CHECK_THROWS_WITH(sgd.group(2), "SGD has no parameter group 2 among 2");
}

TEST_CASE("settings and parameters out of place are errors", "[optim]") {
  nn::Linear a(2, 2);
  CHECK_THROWS_WITH(optim::SGD(a, {.lr = -1}), "SGD: lr must not be negative, got -1");
  CHECK_THROWS_AS(optim::SGD(a, {.nesterov = true}), ValueError);
  CHECK_THROWS_WITH(optim::AdamW(a, {.beta1 = 1}),
                    "AdamW needs beta1 and beta2 in [0, 1), got 1 0.999");
  CHECK_THROWS_WITH(optim::Adam(nn::ReLU()), "Adam was given no parameters");
  CHECK_THROWS_AS(optim::Adam({ones({2}, i64)}), DTypeError);
  CHECK_THROWS_AS(optim::Adam({a.weight * 2}), ValueError);
  for (double bad : {-1e-9, double(NAN), -double(INFINITY)}) {
    INFO(bad);
    CHECK_THROWS_AS(optim::SGD(a, {.lr = bad}), ValueError);
    CHECK_THROWS_AS(optim::SGD(a, {.momentum = bad}), ValueError);
    CHECK_THROWS_AS(optim::SGD(a, {.weight_decay = bad}), ValueError);
    CHECK_THROWS_AS(optim::Adam(a, {.lr = bad}), ValueError);
    CHECK_THROWS_AS(optim::Adam(a, {.beta1 = bad}), ValueError);
    CHECK_THROWS_AS(optim::AdamW(a, {.beta2 = bad}), ValueError);
    CHECK_THROWS_AS(optim::AdamW(a, {.eps = bad}), ValueError);
    CHECK_THROWS_AS(optim::AdamW(a, {.weight_decay = bad}), ValueError);
  }
  CHECK_THROWS_AS(optim::AdamW(a, {.beta2 = 1}), ValueError);
  CHECK_THROWS_AS(optim::SGD(a, {.momentum = 0.9, .dampening = 0.1, .nesterov = true}), ValueError);
}

TEST_CASE("parameters of an optimizer: none, twice, undefined, without requires_grad", "[optim]") {
  nn::Linear a(2, 2);
  CHECK_THROWS_WITH(optim::SGD(std::vector<Tensor>{}), "SGD was given no parameters");
  CHECK_THROWS_WITH(optim::SGD({a.weight, a.weight}),
                    Catch::StartsWith("SGD was given the same tensor twice: 1"));
  CHECK_THROWS_WITH(optim::SGD({Tensor(a.weight), Tensor()}),
                    "SGD was given an undefined tensor as parameter 1");
  optim::SGD sgd({a.weight}, {.lr = 0.5});
  CHECK_THROWS_WITH(sgd.add_group({a.bias, a.weight}, {.lr = 1}),
                    Catch::StartsWith("SGD was given the same tensor twice: 2"));
  CHECK_THROWS_AS(sgd.add_group({a.bias}, {.lr = -1}), ValueError);
  CHECK(sgd.group_count() == 1);  // what was refused left nothing behind
  CHECK(sgd.parameters().size() == 1);
  // One that does not require grad is taken, and never changes.
  a.weight.requires_grad_(false);
  std::vector<double> before = a.weight.to_vector<double>();
  sum(a(ones({1, 2}))).backward();
  sgd.step();
  CHECK(a.weight.to_vector<double>() == before);
}

TEST_CASE("schedules out of place are errors", "[optim]") {
  nn::Linear a(2, 2);
  optim::SGD sgd(a, {.lr = 0.5});
  const double nan = NAN, infinity = INFINITY;
  CHECK_THROWS_AS(optim::StepLR(sgd, {.step_size = 0}), ValueError);
  CHECK_THROWS_AS(optim::StepLR(sgd, {.gamma = nan}), ValueError);
  for (double bad : {0.0, -0.5, 1.5, nan})
    CHECK_THROWS_WITH(optim::LinearLR(sgd, {.start_factor = bad}),
                      Catch::StartsWith("LinearLR: start_factor must be in (0, 1], got "));
  for (double bad : {-0.5, 1.5, nan})
    CHECK_THROWS_WITH(optim::LinearLR(sgd, {.end_factor = bad}),
                      Catch::StartsWith("LinearLR: end_factor must be in [0, 1], got "));
  CHECK_THROWS_AS(optim::LinearLR(sgd, {.total_steps = -1}), ValueError);
  CHECK_THROWS_AS(optim::CosineLR(sgd, {}), ValueError);
  CHECK_THROWS_AS(optim::CosineLR(sgd, {.total_steps = 5, .warmup_steps = 5}), ValueError);
  CHECK_THROWS_AS(optim::CosineLR(sgd, {.total_steps = 5, .warmup_steps = -1}), ValueError);
  CHECK_THROWS_AS(optim::CosineLR(sgd, {.total_steps = 5, .min_lr = infinity}), ValueError);
  CHECK_THROWS_AS(optim::CosineRestarts(sgd, {.first_cycle = 0}), ValueError);
  CHECK_THROWS_AS(optim::CosineRestarts(sgd, {.factor = 0}), ValueError);
  CHECK_THROWS_AS(optim::CosineRestarts(sgd, {.min_lr = nan}), ValueError);
  CHECK(sgd.lr(0) == 0.5);  // none of them has set a rate

  optim::ConstantLR constant(sgd);
  optim::StepLR falling(sgd, {.step_size = 3, .gamma = 0.5});
  optim::LinearLR linear(sgd, {.start_factor = 1, .end_factor = 0, .total_steps = 10});
  optim::CosineLR cosine(sgd, {.total_steps = 10});
  optim::CosineRestarts restarts(sgd, {.first_cycle = 3, .factor = int64_t(1) << 62});
  for (optim::Schedule* s :
       std::vector<optim::Schedule*>{&constant, &falling, &linear, &cosine, &restarts}) {
    INFO(s->name());
    for (int64_t step : {int64_t(-1), std::numeric_limits<int64_t>::min()}) {
      CHECK_THROWS_WITH(s->seek(step),
                        s->name() + std::string(" counts steps from 0, got ") + to_text(step));
      CHECK_THROWS_AS(s->rate(step, 1), ValueError);
    }
    CHECK(s->step_count() == 0);
    s->seek(std::numeric_limits<int64_t>::max());
    double rate = sgd.lr(0);
    CHECK((rate >= 0 && rate <= 0.5));
    CHECK_THROWS_AS(s->step(), ValueError);
    CHECK(s->step_count() == std::numeric_limits<int64_t>::max());
  }
  // Half a cosine over 3 steps, then one over so many that it does not fall any more.
  CHECK(restarts.rate(2, 1) == Approx(0.25));
  CHECK(restarts.rate(3, 1) == Approx(1));
  CHECK(restarts.rate(1000, 1) == Approx(1));
}

TEST_CASE("a saved state that names something twice, or makes no sense, is refused", "[optim]") {
  nn::Parameter p(ones({2}));
  optim::AdamW adam({p}, {.lr = 0.1});
  p.set_grad(ones({2}));
  adam.step();
  optim::State good = adam.state_dict(), bad = good;
  bad.tensors.push_back({"0.exp_avg", zeros({2})});
  CHECK_THROWS_WITH(adam.load_state_dict(bad),
                    "AdamW cannot take over the saved state: 0.exp_avg stands in it twice");
  bad = good;
  bad.values.push_back({"steps.0", "7"});
  CHECK_THROWS_WITH(adam.load_state_dict(bad), Catch::EndsWith("steps.0 stands in it twice"));
  for (auto& [key, value] : (bad = good).values)
    if (key == "steps.0") value = "-3";
  CHECK_THROWS_WITH(adam.load_state_dict(bad), Catch::EndsWith("0 has taken -3 steps"));
  for (const Tensor& wrong : {Tensor(), zeros({3}), zeros({2}, f64), zeros({1, 2})}) {
    (bad = good).tensors[0].second = wrong;
    CHECK_THROWS_WITH(adam.load_state_dict(bad),
                      Catch::Contains("0.exp_avg is " + to_text(wrong) + " in the state"));
  }
  adam.load_state_dict(good);
  CHECK(adam.state_dict().tensors.size() == 2);
}

TEST_CASE("a parameter without gradient is left alone", "[optim]") {
  nn::Parameter a(ones({2})), b(ones({2}));
  optim::AdamW adam({a, b}, {.lr = 0.1, .weight_decay = 0.5});
  a.set_grad(ones({2}));
  adam.step();
  CHECK(a.to_vector<double>()[0] < 0.9);
  CHECK(b.to_vector<double>()[0] == 1);  // no decay either
  CHECK(adam.state_dict().tensors.size() == 2);
  adam.zero_grad();
  CHECK_FALSE(a.grad().defined());
}

TEST_CASE("state of optimizers is counted as theirs", "[optim]") {
  int64_t before = memory_stats()[Purpose::optimizer];
  nn::Parameter p(zeros({1024}));
  optim::Adam adam({p});
  p.set_grad(ones({1024}));
  adam.step();
  CHECK(memory_stats()[Purpose::optimizer] - before == 2 * 4096);
}

TEST_CASE("clip_grad_value_ limits each element", "[optim]") {
  nn::Parameter p(zeros({4}));
  p.set_grad(tensor({-3, 0.5, NAN, 9}));
  optim::clip_grad_value_({p}, 2);
  std::vector<double> g = p.grad().to_vector<double>();
  CHECK(g[0] == -2);
  CHECK(g[1] == 0.5);
  CHECK(std::isnan(g[2]));
  CHECK(g[3] == 2);
  CHECK_THROWS_AS(optim::clip_grad_value_({p}, -1), ValueError);
}

TEST_CASE("norms of other types", "[optim]") {
  nn::Parameter p(zeros({3})), q(zeros({1}));
  p.set_grad(tensor({3, -4, 0}));
  q.set_grad(tensor({-12}));
  CHECK(optim::total_norm({p, q}) == 13);
  CHECK(optim::total_norm({p, q}, 1) == 19);
  CHECK(optim::total_norm({p, q}, INFINITY) == 12);
  CHECK(optim::total_norm({p, q}, 3) == Approx(std::cbrt(27 + 64 + 1728)));
}
