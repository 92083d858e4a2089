// Modules, optimizers and schedules that other engines got wrong.
#include <cmath>

#include "nn/reference.h"
#include "tapegrad/autograd/autocast.h"
#include "tapegrad/optim/optim.h"

using namespace tg;

namespace {

struct Tied : nn::Module {
  nn::Parameter embed{ones({2, 2})}, proj;
  Tied() { proj = embed; }
  TG_MODULE(embed, proj)
  Tensor forward() { return sum(embed) + sum(proj); }
};

// The value of one parameter after one step.
template <class Optimizer, class Options>
double after_one_step(double p, double g, Options options, DType type = f64) {
  nn::Parameter parameter(full({1}, p, type));
  Optimizer optimizer({parameter}, options);
  parameter.set_grad(full({1}, g, type));
  optimizer.step();
  return parameter.item();
}

}  // namespace

TEST_CASE("dropout refuses a bad probability where it is made", "[NUM-18]") {
  for (double p : {-0.1, 1.5, double(NAN)}) CHECK_THROWS_AS(nn::Dropout(p), ValueError);
  CHECK_NOTHROW(nn::Dropout(0));
  CHECK_NOTHROW(nn::Dropout(1));
}

TEST_CASE("Adam adds eps after the correction, outside of the root", "[OPT-01]") {
  optim::AdamOptions o{.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
  CHECK(std::abs(after_one_step<optim::Adam>(1, 1e-8, o) - 0.9995) < 1e-12);
  CHECK(std::abs(after_one_step<optim::Adam>(1, 1, o) - 0.999) < 1.1e-11);
  CHECK(std::abs(after_one_step<optim::Adam>(1, 1e-8, o, f32) - 0.9995) < 1e-7);
  optim::AdamWOptions w{.lr = 1e-3, .weight_decay = 0};
  CHECK(std::abs(after_one_step<optim::AdamW>(1, 1e-8, w) - 0.9995) < 1e-12);
}

TEST_CASE("optimizer state is matched by name, and checked before anything changes", "[OPT-05]") {
  auto train = [](optim::Optimizer& optimizer) {
    int64_t k = 0;
    for (const Tensor& p : optimizer.parameters()) p.set_grad(full(p.shape(), double(++k)));
    optimizer.step();
  };
  nn::Parameter a(zeros({2, 3})), b(zeros({3, 4})), c(zeros({2, 3}));
  optim::Adam saved(NamedTensors{{"a", a}, {"b", b}, {"c", c}});
  train(saved);
  optim::State state = saved.state_dict();

  // Another order: each parameter gets its own moments back.
  optim::Adam reordered(NamedTensors{{"c", c}, {"b", b}, {"a", a}});
  reordered.load_state_dict(state);
  optim::State again = reordered.state_dict();
  for (const char* name : {"a", "b", "c"})
    CHECK(equal(*again.find_tensor(std::string(name) + ".exp_avg"),
                *state.find_tensor(std::string(name) + ".exp_avg")));
  CHECK(again.find_tensor("a.exp_avg")->to_vector<double>()[0] == Approx(0.1));
  CHECK(again.find_tensor("c.exp_avg")->to_vector<double>()[0] == Approx(0.3));

  // Names by position: shapes that do not fit are an error.
  optim::Adam by_position({a, b});
  train(by_position);
  optim::Adam swapped({b, a});
  train(swapped);
  std::vector<double> before = swapped.state_dict().find_tensor("0.exp_avg")->to_vector<double>();
  CHECK_THROWS_WITH(swapped.load_state_dict(by_position.state_dict()),
                    "Adam cannot take over the saved state: 0 is f32[3,4] here and f32[2,3] in "
                    "the state; 1 is f32[2,3] here and f32[3,4] in the state");
  CHECK(swapped.state_dict().find_tensor("0.exp_avg")->to_vector<double>() == before);

  // One more than saved, and one fewer.
  nn::Parameter d(zeros({5}));
  optim::Adam more(NamedTensors{{"a", a}, {"b", b}, {"c", c}, {"d", d}});
  CHECK_THROWS_WITH(more.load_state_dict(state),
                    "Adam cannot take over the saved state: d is not in the state");
  more.load_state_dict(state, {.allow_new = true});
  CHECK(more.state_dict().find_tensor("d.exp_avg") == nullptr);
  CHECK(more.state_dict().integer("steps.a") == 1);
  optim::Adam fewer(NamedTensors{{"a", a}, {"b", b}});
  CHECK_THROWS_WITH(fewer.load_state_dict(state),
                    "Adam cannot take over the saved state: c is in the state only");
}

TEST_CASE("a tied weight steps once, is clipped once, and stays tied after loading", "[OPT-06]") {
  Tied model;
  CHECK(model.parameters().size() == 1);
  optim::SGD sgd(model, {.lr = 0.1});
  model().backward();
  CHECK(optim::total_norm({model.embed, model.proj}) == 4);  // four elements of 2
  sgd.step();
  CHECK(model.embed.to_vector<float>() == std::vector<float>(4, 0.8f));
  nn::StateDict state = model.state_dict();
  CHECK(state.size() == 2);
  Tied loaded;
  loaded.load_state_dict(state);
  CHECK(loaded.embed.same(loaded.proj));
  optim::SGD other(loaded, {.lr = 0.1});
  loaded().backward();
  other.step();
  CHECK(loaded.proj.to_vector<double>()[0] == Approx(0.6));
  other.zero_grad();
  CHECK_FALSE(loaded.proj.grad().defined());
  CHECK_THROWS_WITH(sgd.add_group(NamedTensors{{"again", model.proj}}, {}),
                    "SGD was given the same tensor twice: again; parameters() lists a tied weight "
                    "once");
  CHECK_THROWS_AS(optim::SGD({model.embed, model.proj}), ValueError);
}

TEST_CASE("clipping survives infinite, overflowing, zero and absent gradients", "[OPT-07]") {
  nn::Parameter a(zeros({2})), b(zeros({1}));
  auto set = [&] {
    a.set_grad(tensor({1, INFINITY}));
    b.set_grad(tensor({3}));
  };
  set();
  CHECK_THROWS_AS(optim::clip_grad_norm_({a, b}, 1, {.error_if_nonfinite = true}), ValueError);
  CHECK(a.grad().to_vector<double>()[0] == 1);
  CHECK(b.grad().to_vector<double>()[0] == 3);
  CHECK(std::isinf(optim::clip_grad_norm_({a, b}, 1)));
  CHECK(a.grad().to_vector<double>()[0] == 0);
  CHECK(std::isnan(a.grad().to_vector<double>()[1]));
  CHECK(b.grad().to_vector<double>()[0] == 0);

  nn::Parameter large(zeros({128}));
  large.set_grad(full({128}, 1e19));
  CHECK(optim::clip_grad_norm_({large}, 2) == Approx(1.13137085e20).epsilon(1e-6));
  for (double g : large.grad().to_vector<double>()) CHECK(g == Approx(0.176777).epsilon(1e-5));

  large.set_grad(zeros({128}));
  CHECK(optim::clip_grad_norm_({large}, 2) == 0);
  CHECK(sum(large.grad()).item() == 0);
  CHECK_THROWS_WITH(optim::clip_grad_norm_({large}, -1),
                    "clip_grad_norm_: the largest norm must not be negative, got -1");
  large.set_grad({});
  CHECK(optim::clip_grad_norm_({large}, 2) == 0);
  CHECK(optim::clip_grad_norm_(std::vector<Tensor>{}, 2) == 0);
}

TEST_CASE("the padding row of an embedding gets no gradient", "[NNM-01]") {
  nn::Embedding embedding(10, 5, {.padding_index = 0});
  CHECK(sum(abs(select(embedding.weight, 0, 0))).item() == 0);  // at construction
  Tensor indices = tensor(std::vector<int64_t>{0, 0, 0, 3, 3, 7, 0}, {7});
  sum(embedding(indices)).backward();
  Tensor g = embedding.weight.grad();
  CHECK(select(g, 0, 0).to_vector<double>() == std::vector<double>(5, 0));
  CHECK(select(g, 0, 3).to_vector<double>() == std::vector<double>(5, 2));
  CHECK(select(g, 0, 7).to_vector<double>() == std::vector<double>(5, 1));

  nn::Embedding last(10, 5, {.padding_index = -1});  // counts from the end
  CHECK(last.options.padding_index == 9);
  sum(last(tensor(std::vector<int64_t>{9, 0, 9}, {3}))).backward();
  CHECK(select(last.weight.grad(), 0, 9).to_vector<double>() == std::vector<double>(5, 0));
  CHECK(select(last.weight.grad(), 0, 0).to_vector<double>() == std::vector<double>(5, 1));

  // A weight that is put in later is returned as it is, and only weight decay moves the row.
  embedding.weight = nn::Parameter(ones({10, 5}));
  CHECK(embedding(indices).to_vector<double>() == std::vector<double>(35, 1));
  optim::Adam adam(embedding, {.lr = 0.1, .weight_decay = 0});
  sum(embedding(indices)).backward();
  adam.step();
  CHECK(select(embedding.weight, 0, 0).to_vector<double>() == std::vector<double>(5, 1));
  optim::AdamW decaying(embedding, {.lr = 0.1, .weight_decay = 0.1});
  decaying.step();
  CHECK(embedding.weight.to_vector<double>()[0] == Approx(0.99));
  // Adam's decay is part of the gradient, which is then 0.1 everywhere: a step of the whole lr.
  embedding.weight = nn::Parameter(ones({10, 5}));
  optim::Adam l2(embedding, {.lr = 0.1, .weight_decay = 0.1});
  sum(embedding(indices)).backward();
  l2.step();
  CHECK(embedding.weight.to_vector<double>()[0] == Approx(0.9));
}

TEST_CASE("a cosine schedule resumes on its curve, whichever is loaded first", "[SCH-01]") {
  nn::Parameter p(zeros({1}));
  auto options = optim::SGDOptions{.lr = 0.1};
  optim::SGD sgd({p}, options);
  optim::CosineLR schedule(sgd, {.total_steps = 10});
  for (int i = 0; i < 5; ++i) schedule.step();
  optim::State optimizer_state = sgd.state_dict(), schedule_state = schedule.state_dict();

  for (bool optimizer_first : {true, false}) {
    optim::SGD again({p}, options);
    optim::CosineLR resumed(again, {.total_steps = 10});
    if (optimizer_first) again.load_state_dict(optimizer_state);
    resumed.load_state_dict(schedule_state);
    if (!optimizer_first) again.load_state_dict(optimizer_state);
    CHECK(again.group(0).lr == Approx(0.05));
    resumed.step();
    CHECK(again.group(0).lr == Approx(0.03454915));
    resumed.seek(10);
    CHECK(again.group(0).lr == 0);
    resumed.step();
    CHECK(again.group(0).lr == 0);  // past its end it stays
  }
  // A schedule that is made after the optimizer was loaded starts from the base rate too.
  optim::SGD late({p}, options);
  late.load_state_dict(optimizer_state);
  optim::CosineLR fresh(late, {.total_steps = 10});
  fresh.seek(5);
  CHECK(late.group(0).lr == Approx(0.05));

  // Another horizon is reported, not taken in silence.
  optim::CosineLR longer(late, {.total_steps = 20});
  CHECK_THROWS_WITH(longer.load_state_dict(schedule_state),
                    "CosineLR was saved with total_steps 10, this one has 20; keep_settings = true "
                    "goes on with the new curve");
  longer.load_state_dict(schedule_state, /*keep_settings=*/true);
  CHECK(late.group(0).lr == Approx(0.1 * (1 + std::cos(std::acos(-1.0) / 4)) / 2));

  optim::SGD warm({p}, options);
  optim::CosineRestarts restarts(warm, {.first_cycle = 10, .factor = 2});
  restarts.seek(25);
  CHECK(warm.group(0).lr == Approx(0.01464466));
}

TEST_CASE("a forward under no-grad leaves no weight without history in the region", "[AMP-01]") {
  auto gradient = [](bool look_first) {
    nn::Linear layer(2, 1, {.bias = false});
    {
      NoGradGuard no_grad;
      copy_(layer.weight, tensor({{3, 5}}));
    }
    Tensor x = tensor({{1, 2}});
    Autocast autocast(bf16);
    if (look_first) {
      NoGradGuard no_grad;
      CHECK(layer(x).item() == 13);
    }
    sum(layer(x)).backward();
    {
      NoGradGuard no_grad;
      mul_(layer.weight, 2);
    }
    CHECK(layer(x).item() == 26);  // the new value
    return layer.weight.grad();
  };
  Tensor seen = gradient(true), fresh = gradient(false);
  REQUIRE(seen.defined());
  CHECK(seen.to_vector<double>() == std::vector<double>{1, 2});
  CHECK(fresh.to_vector<double>() == std::vector<double>{1, 2});
}
