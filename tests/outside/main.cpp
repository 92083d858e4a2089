// One step of gradient descent, as a user of the library would write it.
#include <tapegrad/tapegrad.h>

int main() {
  tg::nn::Linear model(3, 1);
  tg::Tensor x = tg::randn({8, 3}), target = tg::zeros({8, 1});
  tg::Tensor before = tg::mse_loss(model(x), target);
  before.backward();
  tg::NoGradGuard no_grad;
  for (tg::Tensor& p : model.parameters()) tg::add_(p, -0.01 * p.grad());
  return tg::mse_loss(model(x), target).item<float>() < before.item<float>() ? 0 : 1;
}
