// Two spirals, a network of three layers, no files needed.
#include <tapegrad/nn/models/mlp.h>
#include <tapegrad/tapegrad.h>

#include <cstdio>

using namespace tg;

int main() {
  manual_seed(0);
  auto points = std::make_shared<data::TensorDataset>(data::spirals(2000));
  data::DataLoader loader(points, {.batch_size = 100, .shuffle = true});
  nn::MLP model({2, 64, 64, 2});
  optim::AdamW optimizer(model, {.lr = 0.01});

  double right = 0;
  for (int epoch = 1; epoch <= 20; ++epoch) {
    right = 0;
    for (auto [x, y] : loader) {
      optimizer.zero_grad();
      Tensor logits = model(x);
      cross_entropy(logits, y).backward();
      optimizer.step();
      right += sum(eq(argmax(logits, 1), y)).item();
    }
    std::printf("epoch %2d  accuracy %.1f%%\n", epoch, 100 * right / 2000);
  }
  return right / 2000 > 0.98 ? 0 : 1;
}
