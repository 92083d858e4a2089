// Training steps of whole models on device cuda against the same steps on the CPU: one seed gives
// the same weights, the same dropout and so, but for the order of sums, the same losses.
#include "cuda/flavour.h"
#include "ops/compare.h"
#include "tapegrad/autograd/autocast.h"
#include "tapegrad/core/random.h"
#include "tapegrad/nn/models/cnn.h"
#include "tapegrad/nn/models/gpt.h"
#include "tapegrad/nn/models/resnet.h"
#include "tapegrad/optim/optim.h"
#include "temporary_folder.h"

using namespace tg;
using namespace tg::test;

namespace {

struct Run {
  std::vector<double> losses;
  std::map<std::string, Tensor> state;  // of the model, on the CPU
};

template <class Optimizer, class M, class Options>
Run train(M model, const Tensor& x, const Tensor& target, DType dtype, Device device,
          const Options& options) {
  model.to(dtype);
  model.to(device);
  manual_seed(11);
  Optimizer optimizer(model, options);
  const Tensor input = (x.is_floating() ? x.to(dtype) : x).to(device), wanted = target.to(device);
  Run run;
  for (int step = 0; step < 4; ++step) {
    optimizer.zero_grad();
    Tensor logits = model(input);
    Tensor loss = cross_entropy(reshape(logits, {-1, logits.shape().back()}), wanted);
    loss.backward();
    optim::clip_grad_norm_(model, 1);
    optimizer.step();
    run.losses.push_back(loss.item());
  }
  for (auto& [name, t] : model.state_dict()) run.state[name] = t.detach().to(kCpuDevice).to(f64);
  return run;
}

// Four steps here and there, in f64 with sums in any order and in f32.
template <class Optimizer, class Make, class Options>
void check_training(Make make, const Tensor& x, const Tensor& target, const Options& options) {
  const auto run = [&](DType dtype, Device device) {
    manual_seed(3);
    return train<Optimizer>(make(), x, target, dtype, device, options);
  };
  for (auto [dtype, tolerance] : {std::pair{f64, 1e-10}, {f32, 1e-4}}) {
    const Run here = run(dtype, kCpuDevice);
    CHECK(here.losses.back() < here.losses.front());
    in_every_order([&, dtype = dtype, tolerance = tolerance] {
      const Run there = run(dtype, kGpu);
      INFO(name_of(dtype));
      for (size_t step = 0; step < here.losses.size(); ++step)
        CHECK(there.losses[step] == Approx(here.losses[step]).epsilon(tolerance));
      REQUIRE(there.state.size() == here.state.size());
      for (const auto& [name, expected] : here.state) {
        INFO(name);
        CHECK(max(abs(there.state.at(name) - expected)).item() < 10 * tolerance);
      }
    });
  }
}

Tensor images(int64_t n, int64_t channels, int64_t size) {
  manual_seed(1);
  return randn({n, channels, size, size}, f64);
}
Tensor classes(std::initializer_list<int64_t> shape, int64_t count) {
  manual_seed(2);
  return randint(0, count, shape);
}

}  // namespace

TEST_CASE("cuda: a convolutional network learns as on the CPU", "[cuda][training]") {
  const Tensor x = images(5, 1, 10), target = classes({5}, 10);
  const auto make = [] { return nn::CNN({.image_size = 10, .dropout = true}); };
  check_training<optim::SGD>(make, x, target,
                             optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .nesterov = true});
  check_training<optim::AdamW>(make, x, target, optim::AdamWOptions{.lr = 1e-3});
}

namespace {

struct Residual : nn::Module {
  nn::Conv2d conv{3, 8, 3, {.stride = 2, .padding = 1, .bias = false}};
  nn::BatchNorm2d norm{8};
  nn::BasicBlock block{8, 12, 2};
  nn::Linear fc{12, 4};
  TG_MODULE(conv, norm, block, fc)
  Tensor forward(const Tensor& x) {
    Tensor y = max_pool2d(relu(norm(conv(x))), 3, {.stride = 2, .padding = 1});
    return fc(flatten(adaptive_avg_pool2d(block(y), 1), 1));
  }
};

}  // namespace

TEST_CASE("cuda: a residual network learns as on the CPU, running estimates too",
          "[cuda][training]") {
  check_training<optim::SGD>([] { return Residual(); }, images(6, 3, 17), classes({6}, 4),
                             optim::SGDOptions{.lr = 0.05, .momentum = 0.9});
}

TEST_CASE("cuda: a transformer learns and generates as on the CPU", "[cuda][training]") {
  const nn::GPTOptions options{
      .vocabulary = 11, .context = 9, .layers = 1, .heads = 2, .dim = 16, .dropout = 0.1};
  const Tensor tokens = classes({3, 9}, 11), target = classes({27}, 11);
  check_training<optim::AdamW>([&] { return nn::GPT(options); }, tokens, target,
                               optim::AdamWOptions{.lr = 1e-2});

  manual_seed(4);
  nn::GPT model(options);
  const auto generate = [&](Device device) {
    model.to(device);
    manual_seed(5);
    return model.generate(tokens.to(device), 6, {.top_k = 4}).to(kCpuDevice).to_vector<int64_t>();
  };
  const std::vector<int64_t> here = generate(kCpuDevice);
  in_every_order([&] { CHECK(generate(kGpu) == here); });
}

TEST_CASE("cuda: mixed precision trains as on the CPU", "[cuda][training]") {
  const Tensor x = images(5, 1, 10).to(f32), target = classes({5}, 10);
  // The scale is too large at first: steps are skipped until it is not.
  const auto run = [&](DType low, Device device) {
    manual_seed(3);
    nn::CNN model({.image_size = 10, .dropout = true});
    model.to(device);
    manual_seed(11);  // each device draws from a generator of its own
    optim::SGD optimizer(model, {.lr = 0.05, .momentum = 0.9});
    optim::GradScaler scaler({.init_scale = 1e8, .enabled = low == f16});
    const Tensor input = x.to(device), wanted = target.to(device);
    std::vector<double> figures;  // losses and scales
    for (int step = 0; step < 12; ++step) {
      optimizer.zero_grad();
      Tensor loss;
      {
        Autocast autocast(low);
        loss = cross_entropy(model(input), wanted);
      }
      scaler.scale(loss).backward();
      scaler.unscale_(optimizer);
      optim::clip_grad_norm_(model, 1);
      scaler.step(optimizer);
      scaler.update();
      figures.push_back(loss.item());
      figures.push_back(scaler.get_scale());
    }
    return figures;
  };
  for (auto [low, ulp] : {std::pair{bf16, 1.0 / 256}, {f16, 1.0 / 2048}}) {
    INFO(name_of(low));
    const std::vector<double> here = run(low, kCpuDevice);
    CHECK(here[22] < here[0]);
    if (low == f16) CHECK(here[1] < 1e8);
    in_every_order([&, low = low, ulp = ulp] {
      const std::vector<double> there = run(low, kGpu);
      for (size_t k = 0; k < here.size(); ++k) CHECK(there[k] == Approx(here[k]).epsilon(4 * ulp));
    });
  }
}

TEST_CASE("cuda: a run that goes on from a checkpoint has the bits of one that was not interrupted",
          "[cuda][training]") {
  const Tensor x = images(5, 1, 10).to(f32).to(kGpu), target = classes({5}, 10).to(kGpu);
  const TemporaryFolder folder;
  in_every_order([&] {
    const auto steps = [&](nn::CNN& model, optim::Optimizer& optimizer) {
      for (int step = 0; step < 2; ++step) {
        optimizer.zero_grad();
        cross_entropy(model(x), target).backward();
        optimizer.step();
      }
    };
    const auto make = [](uint64_t seed) {
      manual_seed(seed);
      nn::CNN model({.image_size = 10, .dropout = true});
      model.to(kGpu);
      return model;
    };
    nn::CNN model = make(1), resumed = make(2);
    optim::AdamW optimizer(model, {.lr = 1e-2}), other(resumed, {.lr = 1e-2});
    const auto parts = [](nn::CNN& m, optim::Optimizer& o) {
      return optim::CheckpointParts{
          .model = &m, .optimizer = &o, .generators = {{"default", &default_generator(kGpu)}}};
    };
    steps(model, optimizer);
    optim::save_checkpoint(folder / "last.safetensors", parts(model, optimizer));
    steps(model, optimizer);
    optim::load_checkpoint(folder / "last.safetensors", parts(resumed, other));
    steps(resumed, other);
    const auto expected = model.state_dict(), got = resumed.state_dict();
    REQUIRE(got.size() == expected.size());
    for (size_t k = 0; k < got.size(); ++k) {
      INFO(got[k].first);
      CHECK(got[k].second.device() == kGpu);
      CHECK(same_bits(got[k].second.to(kCpuDevice), expected[k].second.to(kCpuDevice)));
    }
  });
}
