// Optimizers and schedules against PyTorch in float64; dtypes, layouts, threads.
#include <cmath>
#include <cstring>

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
