// Whole models against PyTorch in float64.
#include <algorithm>
#include <cmath>

#include "nn/reference.h"
#include "tapegrad/nn/models/models.h"

using namespace tg;
using test::distance;
using test::pattern;

namespace {

const test::Reference& models() {
  static const test::Reference reference("nn/models.safetensors");
  return reference;
}

// As `fill` in tools/make_nn_references.py.
void fill(nn::Module& model) {
  model.to(f64);
  NamedTensors parameters = model.named_parameters();
  std::sort(parameters.begin(), parameters.end(),
            [](auto& a, auto& b) { return a.first < b.first; });
  NoGradGuard no_grad;
  int64_t k = 0;
  for (auto& [name, p] : parameters) {
    bool is_scale = name.find("bn") != name.npos && name.find("weight") != name.npos;
    double fan_in = p.dim() > 1 ? double(p.numel() / p.size(0)) : 16;
    copy_(p, pattern(p.shape(), k++) / std::sqrt(fan_in) + (is_scale ? 1.0 : 0.0));
  }
}

template <class M>
void check_model(const std::string& name, M& model, const Tensor& x, double close) {
  fill(model);
  Tensor y = model(x);
  CHECK(distance(y, models().get(name + "/output")) < close);
  sum(y * pattern(y.shape(), 7)).backward();
  NamedTensors parameters = model.named_parameters();
  for (const auto& [key, expected] : models().below(name + "/grad/")) {
    INFO(name << ": " << key);
    for (auto& [own, p] : parameters)
      if (own == key) CHECK(distance(p.grad(), expected) < close);
  }
}

}  // namespace

TEST_CASE("models agree with PyTorch: MLP", "[nn]") {
  nn::MLP model({48, 16, 16, 4});
  check_model("mlp", model, pattern({3, 1, 6, 8}, 1), 1e-12);
}

TEST_CASE("models agree with PyTorch: CNN", "[nn]") {
  nn::CNN model({.image_size = 10});
  check_model("cnn", model, pattern({2, 1, 10, 10}, 2), 1e-12);
}

TEST_CASE("models agree with PyTorch: ResNet-18", "[nn]") {
  nn::ResNet18 model;
  CHECK(model.parameter_count() == 11'173'962);  // torchvision's with this stem and 10 classes
  Tensor x = pattern({2, 3, 16, 16}, 3);
  check_model("resnet18", model, x, 1e-9);  // 20 layers, each divided by a deviation
  CHECK(distance(model.layer3[1].bn1.running_var,
                 models().get("resnet18/after/layer3.1.bn1.running_var")) < 1e-9);
  model.eval();
  NoGradGuard no_grad;
  CHECK(distance(model(x), models().get("resnet18/output_eval")) < 1e-9);
}

TEST_CASE("models agree with PyTorch: GPT", "[nn]") {
  nn::GPT model({.vocabulary = 11, .context = 8, .layers = 2, .heads = 2, .dim = 16});
  Tensor tokens = tensor(std::vector<int64_t>{1, 5, 3, 3, 0, 9, 2, 2, 8, 7, 6, 4}, {2, 6});
  check_model("gpt", model, tokens, 1e-12);
}

TEST_CASE("a safetensors file made by PyTorch loads and gives PyTorch's outputs", "[nn]") {
  nn::CNN model({.image_size = 8});
  model.load_state_dict(load_safetensors(test::test_folder() + "/nn/torch_cnn.safetensors"));
  Tensor x = pattern({3, 1, 8, 8}, 4);
  Tensor expected = models().get("torch_cnn/output");  // of the same weights in float64
  CHECK(distance(model(x.to(f32)), expected) < 1e-5);
  model.to(f64);
  CHECK(distance(model(x), expected) < 1e-12);
}

TEST_CASE("GPT generates the same tokens for the same seed, and respects its context", "[nn]") {
  manual_seed(3);
  nn::GPT model(
      {.vocabulary = 13, .context = 6, .layers = 1, .heads = 2, .dim = 8, .dropout = 0.5});
  Tensor start = tensor(std::vector<int64_t>{1, 2, 3, 4}, {2, 2});
  Generator first(7), second(7);
  Tensor a = model.generate(start, 9, {.generator = &first});
  Tensor b = model.generate(start, 9, {.generator = &second});
  CHECK(a.shape() == Shape{2, 11});
  CHECK(equal(a, b));
  CHECK(equal(narrow(a, 1, 0, 2), start));
  CHECK(model.is_training());  // as it was
  Tensor greedy = model.generate(start, 3, {.temperature = 0});
  model.eval();
  NoGradGuard no_grad;
  CHECK(equal(select(greedy, 1, 2), argmax(select(model(start), 1, 1), 1)));
  CHECK_THROWS_WITH(model(tensor(std::vector<int64_t>(7, 0), {1, 7})),
                    "(GPT): a sequence of 7 tokens is longer than the context of 6");
}
