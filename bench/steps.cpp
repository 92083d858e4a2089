#include "steps.h"

#include <memory>

#include "tapegrad/nn/models/models.h"
#include "tapegrad/tapegrad.h"

namespace tg::bench {
namespace {

// One step of any model: the model, its data and its optimizer live in the closure.
template <class M, class Optimizer, class Loss>
Function<double()> training_step(std::shared_ptr<M> model, std::shared_ptr<Optimizer> optimizer,
                                 Loss loss_of) {
  return [=] {
    optimizer->zero_grad();
    Tensor loss = loss_of(*model);
    loss.backward();
    optimizer->step();
    return loss.item();
  };
}

Function<double()> mlp() {
  manual_seed(0);
  auto model = std::make_shared<nn::MLP>(std::vector<int64_t>{784, 128, 10});
  auto optimizer =
      std::make_shared<optim::SGD>(model->named_parameters(), optim::SGDOptions{.lr = 0.1});
  Tensor x = randn({64, 784}), y = randint(0, 10, {64});
  return training_step(model, optimizer, [=](nn::MLP& m) { return cross_entropy(m(x), y); });
}

Function<double()> cnn() {
  manual_seed(0);
  auto model = std::make_shared<nn::CNN>();
  auto optimizer =
      std::make_shared<optim::Adam>(model->named_parameters(), optim::AdamOptions{.lr = 1e-3});
  Tensor x = randn({64, 1, 28, 28}), y = randint(0, 10, {64});
  return training_step(model, optimizer, [=](nn::CNN& m) { return cross_entropy(m(x), y); });
}

Function<double()> resnet() {
  manual_seed(0);
  auto model = std::make_shared<nn::ResNet18>();
  auto optimizer = std::make_shared<optim::SGD>(
      model->named_parameters(),
      optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 5e-4});
  Tensor x = randn({32, 3, 32, 32}), y = randint(0, 10, {32});
  return training_step(model, optimizer, [=](nn::ResNet18& m) { return cross_entropy(m(x), y); });
}

Function<double()> gpt() {
  manual_seed(0);
  auto model = std::make_shared<nn::GPT>(
      nn::GPTOptions{.vocabulary = 256, .context = 128, .layers = 4, .heads = 8, .dim = 256});
  auto optimizer =
      std::make_shared<optim::AdamW>(model->named_parameters(), optim::AdamWOptions{.lr = 3e-4});
  Tensor x = randint(0, 256, {8, 128}), y = randint(0, 256, {8 * 128});
  return training_step(model, optimizer, [=](nn::GPT& m) {
    return cross_entropy(reshape(m(x), {-1, 256}), y);
  });
}

}  // namespace

const std::vector<Step>& steps() {
  const double conv1 = 2.0 * 64 * 26 * 26 * 32 * 9, conv2 = 2.0 * 64 * 24 * 24 * 64 * 288;
  const double full = 2.0 * 64 * 9216 * 128 + 2.0 * 64 * 1280;
  const double tokens = 8 * 128, linear = 2 * tokens * 256 * 256 * 12 * 4 + 2 * tokens * 256 * 256;
  const double attention = 4.0 * 2 * 2 * 8 * 128 * 128 * 256;
  static const std::vector<Step> all = {
      {"mlp", 2.0 * 64 * 784 * 128 * 2 + 2.0 * 64 * 1280 * 3, mlp},
      {"cnn", 2 * conv1 + 3 * conv2 + 3 * full, cnn},
      {"resnet", 32 * 555.4e6 * 2 * 3, resnet},
      {"gpt", 3 * (linear + attention), gpt},
  };
  return all;
}

}  // namespace tg::bench
