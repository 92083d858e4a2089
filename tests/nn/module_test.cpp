// Module: names, walks, ties, loading, moving, modes, hooks, copies.
#include <cmath>

#include "tapegrad/nn/module.h"

#include "nn/reference.h"
#include "tapegrad/nn/models/models.h"

using namespace tg;
using test::pattern;

namespace {

struct Block : nn::Module {
  nn::Linear fc{4, 4};
  nn::Parameter scale{ones({4})};
  nn::Buffer count{zeros({}, i64)};
  TG_MODULE(fc, scale, count)
  Tensor forward(const Tensor& x) { return fc(x) * scale; }
};

struct Net : nn::Module {
  std::vector<Block> blocks;
  std::unique_ptr<nn::Linear> middle = std::make_unique<nn::Linear>(4, 4);
  std::optional<nn::LayerNorm> absent;
  std::array<nn::Linear, 2> pair{nn::Linear(4, 4, {.bias = false}), nn::Linear(4, 2)};
  nn::Sequential tail{nn::ReLU(), nn::Linear(2, 3)};
  Net() {
    blocks.emplace_back();
    blocks.emplace_back();
  }
  TG_MODULE(blocks, middle, absent, pair, tail)
  Tensor forward(const Tensor& x) {
    Tensor y = x;
    for (Block& b : blocks) y = b(y);
    return tail(pair[1](pair[0]((*middle)(y))));
  }
};

struct Outer : nn::Module {
  Net net;
  TG_MODULE(net)
  Tensor forward(const Tensor& x) { return net(x); }
};

struct Tied : nn::Module {
  nn::Embedding embed{5, 3};
  nn::Linear head{3, 5, {.bias = false}};
  Tied() { head.weight = embed.weight; }
  TG_MODULE(embed, head)
  Tensor forward(const Tensor& x) { return head(embed(x)); }
};

std::vector<std::string> names(const NamedTensors& list) {
  std::vector<std::string> out;
  for (auto& [name, x] : list) out.push_back(name);
  return out;
}

static_assert(!std::is_copy_constructible_v<nn::Linear> && !std::is_copy_assignable_v<Net>);
static_assert(std::is_move_constructible_v<Net> && std::is_nothrow_move_constructible_v<Block>);

}  // namespace

TEST_CASE("members have dotted names, with numbers inside of containers", "[nn]") {
  Net net;
  CHECK(names(net.named_parameters()) ==
        std::vector<std::string>{"blocks.0.scale", "blocks.0.fc.weight", "blocks.0.fc.bias",
                                 "blocks.1.scale", "blocks.1.fc.weight", "blocks.1.fc.bias",
                                 "middle.weight", "middle.bias", "pair.0.weight", "pair.1.weight",
                                 "pair.1.bias", "tail.1.weight", "tail.1.bias"});
  CHECK(names(net.named_buffers()) == std::vector<std::string>{"blocks.0.count", "blocks.1.count"});
  CHECK(net.state_dict().size() == 15);
  CHECK(net.parameter_count() == 2 * (4 + 16 + 4) + 20 + 16 + 10 + 9);
  std::vector<std::string> modules, types;
  for (auto& m : net.named_modules())
    modules.push_back(m.name), types.push_back(m.module->type_name());
  CHECK(modules == std::vector<std::string>{"", "blocks.0", "blocks.0.fc", "blocks.1",
                                            "blocks.1.fc", "middle", "pair.0", "pair.1", "tail",
                                            "tail.0", "tail.1"});
  CHECK(types[0] == "Net");
  CHECK(types[2] == "Linear");
  CHECK(net.children().size() == 6);
  Net moved = std::move(net);
  CHECK(moved.parameters().size() == 13);
}

TEST_CASE("a parameter requires grad and is counted as one", "[nn]") {
  int64_t before = memory_stats()[Purpose::parameter];
  nn::Parameter p{zeros({1024})};
  CHECK(p.requires_grad());
  CHECK(memory_stats()[Purpose::parameter] - before == 4096);
  CHECK_THROWS_AS(nn::Parameter(p * 2), AutogradError);
  CHECK_THROWS_AS(nn::Parameter(zeros({2}, i64)), Error);
}

TEST_CASE("errors name the module by its path and type", "[nn]") {
  Outer outer;
  CHECK_THROWS_WITH(outer(zeros({2, 5})), Catch::StartsWith("net.blocks.0.fc (Linear): linear: ") &&
                                              Catch::Contains("[2,5]") && Catch::Contains("[4,4]"));
  outer.net.pair[1] = nn::Linear(4, 7);
  CHECK_THROWS_WITH(outer(zeros({2, 4})), Catch::StartsWith("net.tail.1 (Linear): linear: "));
  outer.net.middle = std::make_unique<nn::Linear>(3, 3);
  CHECK_THROWS_WITH(outer(zeros({2, 4})), Catch::StartsWith("net.middle (Linear): linear: "));
  CHECK(module_path() == "");  // nothing is left on the stack
}

TEST_CASE("loading reports everything that differs and changes nothing", "[nn]") {
  Net net;
  nn::StateDict state = net.state_dict();
  nn::StateDict bad;
  for (auto& [name, x] : state) {
    if (name == "middle.bias") continue;
    if (name == "tail.1.weight")
      bad.push_back({name, zeros({3, 5})});
    else if (name == "tail.1.bias")
      bad.push_back({name, zeros({3}, f64)});
    else
      bad.push_back({name, zeros_like(x)});
  }
  bad.push_back({"head.weight", zeros({2})});
  std::vector<double> before = net.pair[0].weight.to_vector<double>();
  CHECK_THROWS_WITH(
      net.load_state_dict(bad),
      "Net: the state does not fit, nothing was loaded: missing in the state: middle.bias; "
      "unexpected in the state: head.weight; different: tail.1.weight is f32[3,2] here and "
      "f32[3,5] in the state, tail.1.bias is f32 here and f64 in the state; strict = false casts "
      "floats");
  CHECK(net.pair[0].weight.to_vector<double>() == before);
  bad[bad.size() - 3].second = zeros({3, 2});
  nn::LoadReport report = net.load_state_dict(bad, /*strict=*/false);
  CHECK(report.missing == std::vector<std::string>{"middle.bias"});
  CHECK(report.unexpected == std::vector<std::string>{"head.weight"});
  CHECK(sum(net.pair[0].weight).item() == 0);
}

TEST_CASE("a state that has a name twice is refused, strict or not", "[nn]") {
  nn::Linear linear(2, 2);
  nn::StateDict state = linear.state_dict();
  state.push_back({"weight", zeros({2, 2})});
  std::vector<double> before = linear.weight.to_vector<double>();
  for (bool strict : {true, false})
    CHECK_THROWS_WITH(linear.load_state_dict(state, strict),
                      "Linear: the state does not fit, nothing was loaded: twice in the state: "
                      "weight");
  CHECK(linear.weight.to_vector<double>() == before);
}

TEST_CASE("a prefix that a wrapper left on every name is pointed out", "[nn]") {
  nn::Linear linear(2, 2);
  nn::StateDict wrapped;
  for (auto& [name, x] : linear.state_dict()) wrapped.push_back({"module." + name, x});
  CHECK_THROWS_WITH(linear.load_state_dict(wrapped),
                    Catch::Contains("the state's names begin with \"module.\": take it off"));
}

TEST_CASE("a tied weight is one tensor under two names", "[nn]") {
  Tied model;
  CHECK(model.parameters().size() == 1);
  CHECK(model.parameter_count() == 15);
  CHECK(model.state_dict().size() == 2);
  nn::StateDict one{{"embed.weight", ones({5, 3})}};
  model.load_state_dict(one);  // one name is enough
  CHECK(sum(model.head.weight).item() == 15);
  nn::StateDict two{{"embed.weight", ones({5, 3})}, {"head.weight", zeros({5, 3})}};
  CHECK_THROWS_WITH(model.load_state_dict(two),
                    Catch::Contains("embed.weight and head.weight are one tensor here"));
  model.to(f64);
  CHECK(model.head.weight.same(model.embed.weight));
  CHECK(model.head.weight.dtype() == f64);
  Tied copy = nn::clone(model);
  CHECK(copy.head.weight.same(copy.embed.weight));
  CHECK_FALSE(copy.head.weight.same(model.head.weight));
}

TEST_CASE("to() keeps the tensors and turns gradients along", "[nn]") {
  nn::BatchNorm1d norm(3);
  Tensor held = norm.weight;
  sum(norm(pattern({4, 3}, 1, f32)) * pattern({4, 3}, 2, f32)).backward();
  norm.to(f64);
  CHECK(held.dtype() == f64);
  CHECK(held.requires_grad());
  CHECK(held.grad().dtype() == f64);
  CHECK(norm.running_mean.dtype() == f64);
  CHECK(norm.num_batches_tracked.dtype() == i64);
  sum(norm(pattern({4, 3}, 1)) * pattern({4, 3}, 2)).backward();  // adds to the turned gradient
  CHECK(held.grad().numel() == 3);
  CHECK_THROWS_AS(norm.to(i64), DTypeError);
}

TEST_CASE("modes, gradients and requires_grad reach every module", "[nn]") {
  Net net;
  net.blocks[1].fc.eval();
  {
    nn::EvalGuard guard(net);
    CHECK_FALSE(net.tail[1].is_training());
  }
  CHECK(net.tail[1].is_training());
  CHECK_FALSE(net.blocks[1].fc.is_training());
  sum(net(ones({2, 4}))).backward();
  CHECK(net.blocks[0].scale.grad().defined());
  net.zero_grad(/*set_to_none=*/false);
  CHECK(sum(net.blocks[0].scale.grad()).item() == 0);
  net.zero_grad();
  CHECK_FALSE(net.blocks[0].scale.grad().defined());
  net.requires_grad_(false);
  CHECK_FALSE(net(ones({2, 4})).requires_grad());
  int linears = 0;
  net.apply([&](nn::Module& m) { linears += dynamic_cast<nn::Linear*>(&m) != nullptr; });
  CHECK(linears == 6);
}

TEST_CASE("hooks see calls, may replace outputs, and come off", "[nn]") {
  nn::Sequential net{nn::Linear(3, 3), nn::Tanh()};
  std::vector<std::string> seen;
  auto before = net[1].register_forward_pre_hook([&](nn::Module& m, const auto& inputs) {
    seen.push_back("before " + m.type_name() + to_text(inputs.at(0).shape()));
  });
  auto after = net[1].register_forward_hook([&](nn::Module&, const auto&, const Tensor& y) {
    seen.push_back("after");
    return y * 2;
  });
  Tensor x = ones({2, 3});
  Tensor doubled = net(x);
  CHECK(seen == std::vector<std::string>{"before Tanh[2,3]", "after"});
  Tensor plain = net.at<nn::Tanh>(1).forward(net[0].type_name() == "Linear"
                                                 ? net.at<nn::Linear>(0)(x)
                                                 : Tensor());  // forward bypasses hooks
  CHECK(test::distance(doubled, plain * 2) == 0);
  CHECK(seen.size() == 2);
  nn::Sequential moved = std::move(net);
  after.remove();
  before.remove();
  CHECK(test::distance(moved(x), plain) == 0);
  CHECK(seen.size() == 2);
  after.remove();  // twice is fine
  auto held = std::make_unique<nn::Linear>(1, 1);
  auto orphan =
      held->register_forward_hook([](nn::Module&, const auto&, const Tensor& y) { return y; });
  held.reset();
  orphan.remove();
}

TEST_CASE("a clone has weights of its own and draws no random numbers", "[nn]") {
  manual_seed(9);
  Net net;
  net.blocks[1].eval();
  net.blocks[0].scale.requires_grad_(false);
  RandomState state = default_generator().state();
  Net copy = nn::clone(net);
  CHECK(default_generator().state() == state);
  Tensor x = pattern({3, 4}, 1, f32);
  CHECK(equal(net(x), copy(x)));
  fill_(copy.tail.at<nn::Linear>(1).bias.detach(), 7);
  CHECK_FALSE(equal(net(x), copy(x)));
  CHECK_FALSE(copy.blocks[1].is_training());
  CHECK_FALSE(copy.blocks[0].scale.requires_grad());
  nn::ResNet18 resnet;
  nn::ResNet18 twin = nn::clone(resnet);
  CHECK(equal(resnet.layer2[0].downsample->at<nn::Conv2d>(0).weight,
              twin.layer2[0].downsample->at<nn::Conv2d>(0).weight));
}

TEST_CASE("summary counts parameters, shapes and operations", "[nn]") {
  nn::CNN model;
  nn::Summary s = nn::summary(model, {2, 1, 28, 28});
  CHECK(s.parameters == 1'199'882);  // of PyTorch's MNIST example
  CHECK(s.trainable == s.parameters);
  CHECK(s.parameter_bytes == 4 * s.parameters);
  REQUIRE(s.rows.size() == 5);
  CHECK(s.rows[1].output == Shape{2, 32, 26, 26});
  CHECK(s.rows[1].flops == 2 * 32 * 26 * 26 * (2 * 9 + 1));
  CHECK(s.rows[2].flops == 2LL * 64 * 24 * 24 * (2 * 32 * 9 + 1));
  CHECK(s.rows[3].flops == 2LL * 128 * (2 * 9216 + 1));
  CHECK(s.text().find("conv2    Conv2d  [2,64,24,24]      18,496   42.54 MFLOP") !=
        std::string::npos);
  CHECK(model.is_training());
  CHECK_FALSE(model.conv1.has_hooks());
  nn::MultiheadAttention attention(8, 2);
  // Four projections of 8 by 8 with bias (the three first without counting it), and two products
  // of [5,4] by [4,5] for each of 2 heads and 3 examples.
  CHECK(nn::summary(attention, {5, 3, 8}).flops ==
        15 * 8 * (2 * 8 * 3) + 15 * 8 * (2 * 8 + 1) + 2 * 3 * 2 * (2 * 5 * 5 * 4));
}

TEST_CASE("losses as modules are the functions", "[nn]") {
  Tensor logits = pattern({4, 3}, 1), target = tensor(std::vector<int64_t>{0, 2, 1, 1}, {4});
  CHECK(equal(nn::CrossEntropyLoss({.label_smoothing = 0.1})(logits, target),
              cross_entropy(logits, target, {.label_smoothing = 0.1})));
  CHECK(equal(nn::MSELoss()(logits, logits * 2), mean(square(logits))));
  CHECK(nn::BCEWithLogitsLoss()(zeros({3}), ones({3})).item() == Approx(std::log(2.0)));
  CHECK_THROWS_WITH(nn::MSELoss()(zeros({3}), zeros({4})),
                    Catch::StartsWith("(MSELoss): mse_loss: "));
}
