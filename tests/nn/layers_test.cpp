// Layers against PyTorch in float64: outputs, gradients of inputs and parameters, and what the
// call leaves in the buffers.
#include <cmath>
#include <limits>

#include "nn/reference.h"
#include "tapegrad/nn/models/models.h"

using namespace tg;
using test::distance;
using test::pattern;

namespace {

constexpr double kClose = 1e-12;  // of float64 sums of some hundred terms

struct Case {
  const char* name;
  bool training = true;
};

template <class M, class Call>
void check_case(Case c, M module, Call call) {
  INFO(c.name);
  static const test::Reference reference("nn/layers.safetensors");
  std::string name = c.name;
  module.to(f64);
  module.load_state_dict(reference.below(name + "/state/"));
  module.train(c.training);
  std::vector<Tensor> inputs;
  for (int i = 0; reference.has(name + "/input/" + std::to_string(i)); ++i) {
    inputs.push_back(reference.get(name + "/input/" + std::to_string(i)));
    if (inputs.back().is_floating()) inputs.back().requires_grad_();
  }
  Tensor y = call(module, inputs);
  CHECK(distance(y, reference.get(name + "/output")) < kClose);
  sum(y * pattern(y.shape(), 7)).backward();
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::string key = name + "/input_grad/" + std::to_string(i);
    if (reference.has(key)) CHECK(distance(inputs[i].grad(), reference.get(key)) < kClose);
  }
  size_t gradients = 0;
  for (auto& [key, p] : module.named_parameters()) {
    INFO(key);
    CHECK(distance(p.grad(), reference.get(name + "/grad/" + key)) < kClose);
    ++gradients;
  }
  CHECK(gradients == reference.below(name + "/grad/").size());
  for (auto& [key, buffer] : module.named_buffers()) {
    INFO(key);
    CHECK(distance(buffer, reference.get(name + "/after/" + key)) < kClose);
  }
}

const auto kOne = [](auto& m, const std::vector<Tensor>& x) { return m(x[0]); };

}  // namespace

TEST_CASE("layers agree with PyTorch: linear and convolution", "[nn]") {
  check_case({"linear"}, nn::Linear(5, 3), kOne);
  check_case({"linear_no_bias"}, nn::Linear(5, 3, {.bias = false}), kOne);
  check_case({"conv2d"}, nn::Conv2d(4, 6, {3, 2}, {.stride = {2, 1}, .padding = 1, .groups = 2}),
             kOne);
}

TEST_CASE("layers agree with PyTorch: normalisation", "[nn]") {
  check_case({"batch_norm2d_train"}, nn::BatchNorm2d(3), kOne);
  check_case({"batch_norm2d_eval", false}, nn::BatchNorm2d(3), kOne);
  check_case({"batch_norm1d"}, nn::BatchNorm1d(3, {.momentum = std::nullopt}), kOne);
  check_case({"layer_norm"}, nn::LayerNorm(Shape{3, 4}, {.eps = 1e-4}), kOne);
}

TEST_CASE("layers agree with PyTorch: embedding", "[nn]") {
  check_case({"embedding"}, nn::Embedding(6, 4, {.padding_index = -2}), kOne);
}

TEST_CASE("layers agree with PyTorch: attention", "[nn]") {
  check_case({"attention_self"}, nn::MultiheadAttention(8, 2), kOne);
  check_case({"attention_unbatched"}, nn::MultiheadAttention(8, 2), kOne);
  check_case({"attention_causal"}, nn::MultiheadAttention(8, 2),
             [](auto& m, auto& x) { return m(x[0], nn::AttentionMask{.is_causal = true}); });
  // The same by a mask: true hides, as in PyTorch's module.
  check_case({"attention_causal"}, nn::MultiheadAttention(8, 2), [](auto& m, auto& x) {
    return m(x[0], nn::AttentionMask{.attn_mask = triu(ones({5, 5}, boolean), 1)});
  });
  check_case({"attention_cross"},
             nn::MultiheadAttention(8, 4, {.bias = false, .batch_first = true}),
             [](auto& m, auto& x) {
               Tensor padding = tensor(std::vector<bool>{false, false, false, false, false, false,
                                                         true, true, false, true, false, false},
                                       {3, 4});
               return m(x[0], x[1], x[2], nn::AttentionMask{.key_padding_mask = padding});
             });
}

TEST_CASE("constructors name what is wrong with their arguments", "[nn]") {
  CHECK_THROWS_WITH(nn::Linear(0, 3), "Linear: features must be at least 1, got 0 in and 3 out");
  CHECK_THROWS_WITH(nn::Conv2d(0, 8, 3), "Conv2d: channels must be at least 1, got 0 in and 8 out");
  CHECK_THROWS_WITH(nn::Conv2d(4, 6, 3, {.groups = 3}),
                    "Conv2d: groups must divide the channels, got 3 groups, 4 channels in and 6 "
                    "out");
  CHECK_THROWS_WITH(nn::Conv2d(4, 6, 0), "Conv2d: the kernel size must be at least 1, got 0x0");
  CHECK_THROWS_AS(nn::Conv2d(4, 6, 3, {.stride = 0}), ValueError);
  CHECK_THROWS_AS(nn::Conv2d(4, 6, 3, {.padding = -1}), ValueError);
  CHECK_THROWS_AS(nn::BatchNorm2d(0), ValueError);
  CHECK_THROWS_AS(nn::LayerNorm(0), ValueError);
  CHECK_THROWS_WITH(nn::Embedding(4, 2, {.padding_index = 4}),
                    "Embedding: padding index 4 is outside of the 4 rows");
  CHECK_THROWS_WITH(nn::Dropout(1.5), "Dropout: the probability must be in [0, 1], got 1.5");
  CHECK_THROWS_WITH(nn::MultiheadAttention(10, 3),
                    "MultiheadAttention: the number of heads must divide the dimension, got 3 "
                    "heads, dimension 10");
  CHECK_THROWS_AS(nn::MaxPool2d(2, {.padding = 2}), ValueError);
  CHECK_THROWS_AS(nn::MLP({5}), ValueError);
  CHECK_THROWS_AS(nn::CNN({.image_size = 4}), ValueError);
  CHECK_THROWS_AS(nn::GPT({.heads = 3, .dim = 16}), ValueError);
}

TEST_CASE("initial weights have PyTorch's ranges", "[nn]") {
  manual_seed(5);
  auto extent = [](const Tensor& x) { return max(abs(x)).item(); };
  nn::Linear linear(64, 200);
  CHECK(extent(linear.weight) <= 1 / 8.0);
  CHECK(extent(linear.weight) > 0.99 / 8);
  CHECK(extent(linear.bias) <= 1 / 8.0);
  nn::Conv2d conv(8, 100, 4, {.groups = 2});  // fan in 4 * 16
  CHECK(extent(conv.weight) <= 1 / 8.0);
  CHECK(extent(conv.weight) > 0.99 / 8);

  Tensor w = empty({300, 200});
  auto deviation = [&] { return tg::std(w).item(); };
  nn::init::kaiming_normal_(
      w, {.mode = nn::init::FanMode::fan_out, .nonlinearity = nn::init::Nonlinearity::relu});
  CHECK(deviation() == Approx(std::sqrt(2.0 / 300)).epsilon(0.02));
  nn::init::xavier_uniform_(w, 2);
  CHECK(extent(w) <= float(2 * std::sqrt(6.0 / 500)));
  CHECK(deviation() == Approx(2 * std::sqrt(2.0 / 500)).epsilon(0.02));
  // A normal distribution cut at two deviations has deviation 0.8796 (scipy.stats.truncnorm).
  nn::init::trunc_normal_(w, 0, 0.02, -0.04, 0.04);
  CHECK(extent(w) <= 0.04f);
  CHECK(deviation() == Approx(0.02 * 0.87962566).epsilon(0.02));
  CHECK(std::abs(mean(w).item()) < 5e-4);
  CHECK_THROWS_AS(nn::init::xavier_normal_(empty({3})), ShapeError);
}

TEST_CASE("dropout and batch norm follow the mode of the module", "[nn]") {
  nn::Sequential net{nn::Dropout(0.5), nn::BatchNorm1d(4)};
  net.eval();
  Tensor x = pattern({8, 4}, 1, f32);
  CHECK(distance(net(x), x) < 1e-5);  // running mean 0, variance 1
  net.train();
  Tensor y = net(x);
  CHECK(distance(y, x) > 0.01);
  CHECK(net.at<nn::BatchNorm1d>(1).num_batches_tracked.item_int64() == 1);
}

TEST_CASE("in evaluation the gradient of batch norm is dy times a number, whatever x is", "[nn]") {
  nn::BatchNorm2d norm(19);
  norm.eval();
  const double inf = std::numeric_limits<double>::infinity(), scale = 1 / std::sqrt(1 + 1e-5);
  for (bool last : {false, true}) {
    Tensor x = full({2, 19, 3, 5}, inf), dy = full({2, 19, 3, 5}, 2.0);
    if (last) x = channels_last(x), dy = channels_last(dy);
    x.requires_grad_();
    Tensor dx = grad(std::vector{norm(x)}, {x}, {.gradients = {dy}})[0];
    for (double g : dx.to_vector<double>()) CHECK(g == Approx(2 * scale));
  }
}
