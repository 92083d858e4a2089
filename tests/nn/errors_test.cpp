// What goes wrong inside of a model names the module: a wrong shape in every layer three levels
// deep (a member, a vector, a Sequential), in forward, in backward and when memory runs out.
#include "nn/reference.h"

using namespace tg;
using test::pattern;

namespace {

struct Stage : nn::Module {
  nn::Sequential steps;
  TG_MODULE(steps)
  Tensor forward(const Tensor& x) { return steps(x); }
};

struct Body : nn::Module {
  std::vector<Stage> stages;
  TG_MODULE(stages)
  Tensor forward(const Tensor& x) {
    Tensor y = x;
    for (Stage& s : stages) y = s(y);
    return y;
  }
};

struct Deep : nn::Module {
  Body body;
  TG_MODULE(body)
  Tensor forward(const Tensor& x) { return body(x); }
};

template <class M>
Deep deep(M layer) {
  Deep model;
  model.body.stages.emplace_back();
  model.body.stages.emplace_back();
  model.body.stages[1].steps.push_back(nn::Identity());
  model.body.stages[1].steps.push_back(std::move(layer));
  return model;
}

std::string message(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

template <class M>
void check_path(M layer, const Tensor& input, const std::string& rest) {
  std::string type = layer.type_name();
  Deep model = deep(std::move(layer));
  std::string text = message([&] { model(input); });
  INFO(text);
  CHECK(text.starts_with("body.stages.1.steps.1 (" + type + "): " + rest));
  CHECK(text.find('\n') == text.npos);
  CHECK(text.find(to_text(input.shape())) != text.npos);
}

// y = x, and NaN as the gradient of x.
struct BadGradient : nn::Module {
  TG_MODULE()
  Tensor forward(const Tensor& x) { return sqrt(x * 0) + x; }
};

}  // namespace

TEST_CASE("a wrong shape in a layer three deep names the layer, the operator and the shape",
          "[nn]") {
  check_path(nn::Linear(4, 2), zeros({3, 5}), "linear: ");
  check_path(nn::Conv2d(3, 4, 3), zeros({2, 5, 8, 8}), "conv2d: ");
  check_path(nn::Conv2d(3, 4, 9), zeros({2, 3, 8, 8}), "conv2d: ");
  check_path(nn::BatchNorm1d(3), zeros({2, 4}), "expects 3 channels in dimension 1");
  check_path(nn::BatchNorm2d(3), zeros({2, 3, 4}), "expects images [N,C,H,W]");
  check_path(nn::LayerNorm(4), zeros({2, 5}), "layer_norm: ");
  check_path(nn::MaxPool2d(9), zeros({1, 1, 4, 4}), "max_pool2d: ");
  check_path(nn::AvgPool2d(9), zeros({1, 1, 4, 4}), "avg_pool2d: ");
  check_path(nn::AdaptiveAvgPool2d(2), zeros({4}), "adaptive_avg_pool2d: ");
  check_path(nn::MultiheadAttention(8, 2), zeros({3, 2, 6}), "expects 8 features");
  Deep model = deep(nn::BasicBlock(3, 3));  // a layer of a layer
  CHECK_THROWS_WITH(model(zeros({2, 4, 8, 8})),
                    Catch::StartsWith("body.stages.1.steps.1.conv1 (Conv2d): conv2d: "));
}

TEST_CASE("an index or a dtype that a layer cannot take names the layer", "[nn]") {
  Deep model = deep(nn::Embedding(5, 2));
  CHECK_THROWS_WITH(model(tensor(std::vector<int64_t>{1, 5}, {2})),
                    Catch::StartsWith("body.stages.1.steps.1 (Embedding): embedding: "));
  CHECK_THROWS_WITH(model(zeros({2})),
                    Catch::StartsWith("body.stages.1.steps.1 (Embedding): embedding: "));
}

TEST_CASE("losses do not broadcast in silence", "[nn]") {
  CHECK_THROWS_AS(nn::MSELoss()(zeros({3, 1}), zeros({3})), ShapeError);
  CHECK_THROWS_AS(nn::BCEWithLogitsLoss()(zeros({3, 1}), zeros({3})), ShapeError);
  CHECK_THROWS_AS(nn::CrossEntropyLoss()(zeros({3, 4}), zeros({2}, i64)), ShapeError);
  CHECK_THROWS_WITH(nn::CrossEntropyLoss()(zeros({1, 4}), full({1}, 4, i64)),
                    Catch::StartsWith("(CrossEntropyLoss): cross_entropy: "));
}

TEST_CASE("the first NaN of a backward names the module that the operator was in", "[nn]") {
  Deep model = deep(BadGradient());
  AnomalyGuard anomaly;
  Tensor x = ones({3});
  x.requires_grad_();
  Tensor y = sum(model(x));
  std::string text = message([&] { y.backward(); });
  INFO(text);
  CHECK(text.find("body.stages.1.steps.1 (BadGradient)") != text.npos);
  CHECK(text.find("sqrt") != text.npos);
}

TEST_CASE("running out of memory names the module and the operator that asked", "[nn]") {
  Deep model = deep(nn::Linear(256, 4096));
  Tensor x = zeros({1024, 256});
  set_memory_limit(memory_stats().live + 1'000'000);
  std::string text = message([&] { model(x); });
  set_memory_limit(0);
  INFO(text);
  CHECK(text.find("body.stages.1.steps.1 (Linear): linear") != text.npos);
  CHECK(text.find("16.00 MiB") != text.npos);  // 1024 * 4096 * 4
}
