// A whole training program: pictures of clothes, a convolutional network, 90% after one pass.
#include <tapegrad/tapegrad.h>

#include <cstdio>
#include <cstdlib>

using namespace tg;

struct Classifier : nn::Module {
  nn::Conv2d conv1{1, 32, 3};
  nn::Conv2d conv2{32, 64, 3};
  nn::Linear fc1{64 * 12 * 12, 128};
  nn::Linear fc2{128, 10};
  TG_MODULE(conv1, conv2, fc1, fc2)

  Tensor forward(const Tensor& x) {
    Tensor h = max_pool2d(relu(conv2(relu(conv1(x)))), 2);
    return fc2(relu(fc1(flatten(h, 1))));
  }
};

double accuracy(Classifier& model, data::DataLoader<data::ImageAndLabel>& loader) {
  NoGradGuard no_grad;
  nn::EvalGuard eval(model);
  double right = 0;
  for (auto [x, y] : loader) right += sum(eq(argmax(model(x), 1), y)).item();
  return right / double(loader.samples());
}

int main(int argc, char** argv) try {
  const int64_t most_steps = argc > 1 ? std::atoll(argv[1]) : 1000000;  // for a short try
  manual_seed(1);
  auto train = std::make_shared<data::Mnist>(data::kFashionMnistFolder, true);
  auto test = std::make_shared<data::Mnist>(data::kFashionMnistFolder, false);
  data::DataLoader train_loader(train,
                                {.batch_size = 64, .shuffle = true, .workers = 1, .seed = 1});
  data::DataLoader test_loader(test, {.batch_size = 256, .workers = 1});

  Classifier model;
  optim::AdamW optimizer(model, {.lr = 2e-3});
  optim::CosineLR schedule(optimizer, {.total_steps = train_loader.size(), .warmup_steps = 50});
  int64_t step = 0;
  for (auto [x, y] : train_loader) {
    optimizer.zero_grad();
    Tensor loss = cross_entropy(model(x), y);
    loss.backward();
    optimizer.step();
    schedule.step();
    if (step % 100 == 0)
      std::printf("step %lld  loss %.4f\n", static_cast<long long>(step), loss.item());
    if (++step >= most_steps) break;
  }
  std::printf("test accuracy %.2f%%\n", 100 * accuracy(model, test_loader));
  save_safetensors("classifier.safetensors", model.state_dict());
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
