// What goes wrong inside of a model names the module: a wrong shape in every layer three levels
// deep (a member, a vector, a Sequential), in forward, in backward and when memory runs out.
#include "error_text.h"
#include "nn/reference.h"
#include "tapegrad/autograd/op.h"
#include "tapegrad/nn/models/models.h"

using namespace tg;
using test::error_text;
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

template <class M>
void check_path(M layer, const Tensor& input, const std::string& rest) {
  std::string type = layer.type_name();
  Deep model = deep(std::move(layer));
  std::string text = error_text([&] { model(input); });
  INFO(text);
  CHECK(text.starts_with("body.stages.1.steps.1 (" + type + "): " + rest));
  CHECK(text.find('\n') == text.npos);
  CHECK(text.find(to_text(input.shape())) != text.npos);
}

// In the backward of a layer three deep, an infinite gradient that comes in is reported with the
// layer's path, or that of a layer inside of it.
template <class M>
void check_backward(M layer, const Tensor& input) {
  INFO(layer.type_name());
  Deep model = deep(std::move(layer));
  AnomalyGuard anomaly;
  Tensor x = input.is_floating() ? input.clone().requires_grad_() : input;
  Tensor y = model(x);
  std::string text = error_text([&] { y.backward(full(y.shape(), INFINITY)); });
  INFO(text);
  CHECK(text.starts_with("body.stages.1.steps.1"));
  CHECK(text.find(" backward: made NaN or Inf") != text.npos);
  CHECK(text.find('\n') == text.npos);
}

// The same where there is no memory for the layer's output.
template <class M>
void check_memory(M layer, const Tensor& input) {
  INFO(layer.type_name());
  Deep model = deep(std::move(layer));
  set_memory_limit(memory_stats().live + 1000);
  std::string text = error_text([&] { model(input); });
  set_memory_limit(0);
  INFO(text);
  CHECK(text.starts_with("body.stages.1.steps.1"));
  CHECK(text.find(": out of memory on cpu: asked for ") != text.npos);
  CHECK(text.find('\n') == text.npos);
}

// A loss is the third level of such a model: a member of an element of a vector.
template <class L>
struct Judge : nn::Module {
  nn::Sequential steps{nn::Identity()};
  L loss;
  explicit Judge(L loss) : loss(std::move(loss)) {}
  TG_MODULE(steps, loss)
  Tensor forward(const Tensor& x, const Tensor& target) { return loss(steps(x), target); }
};
template <class L>
struct Court : nn::Module {
  std::vector<Judge<L>> judges;
  TG_MODULE(judges)
  Tensor forward(const Tensor& x, const Tensor& target) { return judges.back()(x, target); }
};
template <class L>
struct Judged : nn::Module {
  Court<L> court;
  TG_MODULE(court)
  Tensor forward(const Tensor& x, const Tensor& target) { return court(x, target); }
};

// A loss with what it takes and what it cannot take.
template <class L>
void check_loss(const Function<L()>& make, const Tensor& x, const Tensor& target,
                const Tensor& wrong) {
  Judged<L> model;
  model.court.judges.emplace_back(make());
  model.court.judges.emplace_back(make());
  const std::string path = "court.judges.1.loss (" + make().type_name() + "): ";
  CHECK_THROWS_WITH(model(x, wrong), Catch::StartsWith(path));
  set_memory_limit(memory_stats().live + 1000);
  std::string text = error_text([&] { model(x, target); });
  set_memory_limit(0);
  CHECK_THAT(text, Catch::StartsWith(path) && Catch::Contains("out of memory"));
  AnomalyGuard anomaly;
  Tensor y = model(x.clone().requires_grad_(), target);
  text = error_text([&] { y.backward(full(y.shape(), INFINITY)); });
  CHECK_THAT(text, Catch::StartsWith(path) && Catch::Contains(" backward: made NaN or Inf"));
}

// An operator whose backward gives a gradient of another shape.
struct Crooked : nn::Module {
  TG_MODULE()
  Tensor forward(const Tensor& x) {
    Op op("crooked");
    return op.record(x.detach() * 2, {x},
                     [](const Tensor&, Needs) -> Grads { return {ones({5})}; });
  }
};

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

TEST_CASE("a dimension that an input does not have names the layer", "[nn]") {
  CHECK_THROWS_WITH(deep(nn::Softmax(2))(zeros({2, 3})),
                    "body.stages.1.steps.1 (Softmax): softmax: dim 2 is out of range for rank 2");
  CHECK_THROWS_WITH(deep(nn::Flatten({.start_dim = 3}))(zeros({2, 3})),
                    "body.stages.1.steps.1 (Flatten): flatten: dim 3 is out of range for rank 2");
}

namespace {

// A model whose layer, three deep, is called as `call` says.
template <class M, class F>
struct Caller : nn::Module {
  M layer;
  F call;
  Caller(M layer, F call) : layer(std::move(layer)), call(std::move(call)) {}
  TG_MODULE(layer)
  Tensor forward(const Tensor& x) { return call(layer, x); }
};

// `call` must raise an error of one line that begins with the layer's path.
template <class M, class F>
void check_misuse(M layer, F call, const std::string& part = "undefined") {
  std::string type = layer.type_name();
  Deep model = deep(Caller<M, F>(std::move(layer), call));
  std::string text = error_text([&] { model(ones({2, 4})); });
  INFO(text);
  CHECK_THAT(text, Catch::StartsWith("body.stages.1.steps.1.layer (" + type + "): ") &&
                       Catch::Contains(part));
  CHECK(text.find('\n') == text.npos);
}

const auto with_nothing = [](auto& layer, const Tensor&) { return layer(Tensor()); };

}  // namespace

TEST_CASE("no layer takes an undefined tensor", "[nn]") {
  check_misuse(nn::Identity(), with_nothing);
  check_misuse(nn::Flatten(), with_nothing);
  check_misuse(nn::Linear(2, 2), with_nothing);
  check_misuse(nn::Conv2d(1, 1, 1), with_nothing);
  check_misuse(nn::BatchNorm1d(4), with_nothing);
  check_misuse(nn::BatchNorm2d(4), with_nothing);
  check_misuse(nn::LayerNorm(4), with_nothing);
  check_misuse(nn::MaxPool2d(2), with_nothing);
  check_misuse(nn::AvgPool2d(2), with_nothing);
  check_misuse(nn::AdaptiveAvgPool2d(2), with_nothing);
  check_misuse(nn::Embedding(4, 2), with_nothing);
  check_misuse(nn::ReLU(), with_nothing);
  check_misuse(nn::SiLU(), with_nothing);
  check_misuse(nn::Tanh(), with_nothing);
  check_misuse(nn::Sigmoid(), with_nothing);
  check_misuse(nn::GELU(), with_nothing);
  check_misuse(nn::LeakyReLU(), with_nothing);
  check_misuse(nn::Softmax(0), with_nothing);
  check_misuse(nn::Dropout(), with_nothing);
  nn::Dropout rests;
  rests.eval();
  check_misuse(std::move(rests), with_nothing);
  check_misuse(nn::Sequential(), with_nothing);
  check_misuse(nn::MultiheadAttention(4, 2), with_nothing);
  check_misuse(nn::MLP({4, 2}), with_nothing);
  const nn::GPTOptions tiny{.vocabulary = 4, .context = 4, .layers = 1, .heads = 1, .dim = 4};
  check_misuse(nn::GPT(tiny), with_nothing);
  check_misuse(nn::CausalSelfAttention(tiny), with_nothing);
  for (int missing : {0, 1, 2})
    check_misuse(nn::MultiheadAttention(4, 2), [missing](auto& layer, const Tensor& x) {
      Tensor none;
      return layer(missing == 0 ? none : x, missing == 1 ? none : x, missing == 2 ? none : x);
    });
  for (bool first : {true, false}) {
    auto half = [first](auto& loss, const Tensor& x) {
      return first ? loss(Tensor(), x) : loss(x, Tensor());
    };
    check_misuse(nn::CrossEntropyLoss(), half);
    check_misuse(nn::MSELoss(), half);
    check_misuse(nn::L1Loss(), half);
    check_misuse(nn::BCEWithLogitsLoss(), half);
  }
  // A model of layers gives the path of the layer that was called.
  for (const auto& call :
       std::vector<Function<void()>>{[] { nn::CNN()(Tensor()); }, [] { nn::ResNet18()(Tensor()); },
                                     [] { nn::BasicBlock(2, 2)(Tensor()); }}) {
    std::string text = error_text(call);
    INFO(text);
    CHECK(text.starts_with("conv1 (Conv2d): conv2d: an input is undefined"));
  }
}

TEST_CASE("a layer that lacks a part names itself", "[nn]") {
  const auto on_rows = [](auto& layer, const Tensor& x) { return layer(x); };
  nn::Linear linear(4, 2);
  linear.weight = {};
  check_misuse(std::move(linear), on_rows, "the weight is undefined");
  nn::Conv2d conv(1, 1, 1);
  conv.weight = {};
  check_misuse(
      std::move(conv),
      [](auto& layer, const Tensor&) {
        return layer(ones({1, 1, 2, 2}));
      },
      "the weight is undefined");
  nn::Embedding embedding(4, 2);
  embedding.weight = {};
  check_misuse(std::move(embedding),
               [](auto& layer, const Tensor&) { return layer(zeros({2}, i64)); });
  for (int part : {0, 1, 2}) {
    nn::BatchNorm1d norm(4);
    (part == 0 ? norm.running_mean : part == 1 ? norm.running_var : norm.num_batches_tracked) = {};
    check_misuse(std::move(norm), on_rows, "undefined");
  }
  nn::MultiheadAttention attention(4, 2);
  attention.in_proj_weight = {};
  check_misuse(std::move(attention), on_rows);
  nn::MLP mlp({4, 2});
  mlp.layers.clear();
  check_misuse(std::move(mlp), on_rows, "has no layers");
  // One whose content has been moved away is such a layer too.
  nn::Linear from(4, 2);
  nn::Linear to = std::move(from);
  CHECK_THROWS_WITH(from(ones({2, 4})), "(Linear): linear: the weight is undefined");
}

TEST_CASE("an AnyModule or a Sequential that holds nothing", "[nn]") {
  nn::AnyModule nothing;
  CHECK_FALSE(nothing);
  CHECK_THROWS_WITH(nothing(ones({2})), "an AnyModule that holds no module was used");
  CHECK_THROWS_WITH(nothing.module(), "an AnyModule that holds no module was used");
  CHECK_FALSE(nothing.remake());
  nn::Sequential net{nn::ReLU()};
  CHECK_THROWS_WITH(net.push_back(std::move(nothing)),
                    "Sequential: an AnyModule that holds no module cannot be step 1");
  CHECK(net.size() == 1);
  Deep model = deep(nn::Sequential());
  CHECK(sum(model(ones({2}))).item() == 2);  // nothing to do: the input comes out
  CHECK_THROWS_AS(nn::Sequential()[0], IndexError);
  CHECK(nn::Sequential().parameters().empty());
}

TEST_CASE("sizes that no layer can have are refused where it is made", "[nn]") {
  const int64_t most = INT64_MAX, least = INT64_MIN, half = int64_t(1) << 62;
  set_memory_limit(memory_stats().live + (int64_t(1) << 24));
  for (int64_t n : {least, int64_t(-1), int64_t(0), half, most}) {
    INFO(n);
    CHECK_THROWS_AS(nn::Linear(n, 2), Error);
    CHECK_THROWS_AS(nn::Linear(2, n), Error);
    CHECK_THROWS_AS(nn::Conv2d(n, 1, 1), Error);
    CHECK_THROWS_AS(nn::Conv2d(1, n, 1), Error);
    CHECK_THROWS_AS(nn::Conv2d(1, 1, n), Error);
    CHECK_THROWS_AS(nn::Embedding(n, 1), Error);
    CHECK_THROWS_AS(nn::Embedding(1, n), Error);
    CHECK_THROWS_AS(nn::BatchNorm2d(n), Error);
    CHECK_THROWS_AS(nn::LayerNorm(n), Error);
    CHECK_THROWS_AS(nn::MultiheadAttention(n, 1), Error);
    CHECK_THROWS_AS(nn::MultiheadAttention(4, n), Error);
    CHECK_THROWS_AS(nn::MLP({n, 2}), Error);
    CHECK_THROWS_AS(nn::CNN({.image_size = n}), Error);
    CHECK_THROWS_AS(nn::ResNet18({.classes = n}), Error);
    CHECK_THROWS_AS(nn::GPT({.vocabulary = n, .layers = 1, .dim = 4}), Error);
    CHECK_THROWS_AS(nn::GPT({.vocabulary = 4, .context = n, .layers = 1, .dim = 4}), Error);
    CHECK_THROWS_AS(nn::GPT({.vocabulary = 1, .context = 1, .layers = 1, .heads = 1, .dim = n}),
                    Error);
    CHECK_THROWS_AS(nn::MaxPool2d(2, {.padding = n ? n : -1}), ValueError);
    if (n <= 0) CHECK_THROWS_AS(nn::MaxPool2d(n), ValueError);
    if (n <= 0) CHECK_THROWS_AS(nn::AdaptiveAvgPool2d(n), ValueError);
    if (n <= 0) CHECK_THROWS_AS(nn::Conv2d(1, 1, 1, {.stride = n}), ValueError);
    if (n <= 0) CHECK_THROWS_AS(nn::Conv2d(1, 1, 1, {.dilation = n}), ValueError);
    if (n < 0) CHECK_THROWS_AS(nn::Conv2d(1, 1, 1, {.padding = n}), ValueError);
    CHECK_THROWS_AS(nn::Conv2d(1, 1, 1, {.groups = n}), ValueError);
  }
  set_memory_limit(0);
  CHECK_THROWS_AS(nn::MLP({2, 2}, {.dropout = 1.5}), ValueError);
  CHECK_THROWS_AS(nn::MLP({2, 2}, {.dropout = NAN}), ValueError);
  CHECK_THROWS_AS(nn::Dropout(NAN), ValueError);
}

TEST_CASE("in the backward every layer is named", "[nn]") {
  const Tensor images = pattern({2, 4, 8, 8}, 1, f32), rows = pattern({3, 4}, 2, f32);
  check_backward(nn::Linear(4, 2), rows);
  check_backward(nn::Conv2d(4, 3, 3), images);
  check_backward(nn::BatchNorm1d(4), rows);
  check_backward(nn::BatchNorm2d(4), images);
  check_backward(nn::LayerNorm(4), rows);
  check_backward(nn::MaxPool2d(2), images);
  check_backward(nn::AvgPool2d(2), images);
  check_backward(nn::AdaptiveAvgPool2d(3), images);
  check_backward(nn::MultiheadAttention(4, 2), pattern({3, 2, 4}, 3, f32));
  check_backward(nn::Embedding(5, 2), tensor(std::vector<int64_t>{1, 4}, {2}));
  check_backward(nn::ReLU(), rows);
  check_backward(nn::SiLU(), rows);
  check_backward(nn::Tanh(), rows);
  check_backward(nn::Sigmoid(), rows);
  check_backward(nn::GELU(), rows);
  check_backward(nn::LeakyReLU(), rows);
  check_backward(nn::Softmax(1), rows);
  check_backward(nn::Dropout(0.1), rows);
  check_backward(nn::Flatten(), images);
  check_backward(nn::BasicBlock(4, 4), images);
  check_backward(nn::MLP({4, 3, 2}), rows);
}

TEST_CASE("a gradient of the wrong shape names the module and the operator", "[nn]") {
  Deep model = deep(Crooked());
  AnomalyGuard anomaly;
  Tensor y = model(ones({3}).requires_grad_());
  std::string text = error_text([&] { sum(y).backward(); });
  INFO(text);
  CHECK(text.starts_with("body.stages.1.steps.1 (Crooked): crooked backward: "));
  CHECK(text.find("[5]") != text.npos);
  CHECK(text.find("[3]") != text.npos);
}

TEST_CASE("out of memory names every layer that makes something", "[nn]") {
  const Tensor images = zeros({2, 4, 64, 64}), rows = zeros({900, 16});
  check_memory(nn::Linear(16, 2), rows);
  check_memory(nn::Conv2d(4, 3, 3), images);
  check_memory(nn::BatchNorm1d(16), rows);
  check_memory(nn::BatchNorm2d(4), images);
  check_memory(nn::LayerNorm(16), rows);
  check_memory(nn::MaxPool2d(2), images);
  check_memory(nn::AvgPool2d(2), images);
  check_memory(nn::AdaptiveAvgPool2d(32), images);
  check_memory(nn::MultiheadAttention(16, 2), zeros({90, 10, 16}));
  check_memory(nn::Embedding(5, 200), zeros({30}, i64));
  check_memory(nn::ReLU(), rows);
  check_memory(nn::SiLU(), rows);
  check_memory(nn::Tanh(), rows);
  check_memory(nn::Sigmoid(), rows);
  check_memory(nn::GELU(), rows);
  check_memory(nn::LeakyReLU(), rows);
  check_memory(nn::Softmax(1), rows);
  check_memory(nn::Dropout(), rows);
  check_memory(nn::Flatten(), channels_last(images));  // a view of other memory is a copy
  check_memory(nn::BasicBlock(4, 4), images);
}

TEST_CASE("losses three deep are named: shapes, memory, backward", "[nn]") {
  const Tensor x = pattern({900, 4}, 1, f32), unit = full({900, 4}, 0.5);
  check_loss<nn::CrossEntropyLoss>(
      [] { return nn::CrossEntropyLoss({.reduction = Reduction::none}); }, x, zeros({900}, i64),
      zeros({4}, i64));
  check_loss<nn::MSELoss>([] { return nn::MSELoss(Reduction::none); }, x, unit, zeros({900}));
  check_loss<nn::L1Loss>([] { return nn::L1Loss(Reduction::none); }, x, unit, zeros({900}));
  check_loss<nn::BCEWithLogitsLoss>(
      [] { return nn::BCEWithLogitsLoss({.reduction = Reduction::none}); }, x, unit, zeros({900}));
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
  std::string text = error_text([&] { y.backward(); });
  INFO(text);
  CHECK(text.find("body.stages.1.steps.1 (BadGradient)") != text.npos);
  CHECK(text.find("sqrt") != text.npos);
}

TEST_CASE("running out of memory names the module and the operator that asked", "[nn]") {
  Deep model = deep(nn::Linear(256, 4096));
  Tensor x = zeros({1024, 256});
  set_memory_limit(memory_stats().live + 1'000'000);
  std::string text = error_text([&] { model(x); });
  set_memory_limit(0);
  INFO(text);
  CHECK(text.find("body.stages.1.steps.1 (Linear): linear") != text.npos);
  CHECK(text.find("16.00 MiB") != text.npos);  // 1024 * 4096 * 4
}
