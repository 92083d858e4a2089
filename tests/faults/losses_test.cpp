// Losses that other engines got wrong.
#include <cmath>

#include "catch.h"
#include "tapegrad/autograd/engine.h"
#include "tapegrad/autograd/ops.h"

using namespace tg;

namespace {

constexpr double kInf = INFINITY;

bool near(const Tensor& x, const std::vector<double>& expected, double within = 2e-6) {
  const std::vector<double> got = x.to_vector<double>();
  if (got.size() != expected.size()) return false;
  for (size_t i = 0; i < got.size(); ++i) {
    INFO("element " << i << " is " << got[i] << ", expected " << expected[i]);
    CHECK((got[i] == expected[i] || std::abs(got[i] - expected[i]) <= within));
  }
  return true;
}

}  // namespace

TEST_CASE("label smoothing, ignored targets and class weights together", "[LOS-02]") {
  const Tensor logits = tensor({{1, 2}, {3, 0.4}}), target = tensor<int64_t>({-100, 1}, {2});
  const Tensor weight = tensor({0.2, 0.3});
  const auto loss = [&](const Tensor& x, const Tensor& t, const Tensor& w, Reduction r) {
    return cross_entropy(x, t, {.weight = w, .label_smoothing = 0.1, .reduction = r}).item();
  };
  CHECK(loss(logits, target, weight, Reduction::mean) == Approx(2.540451).epsilon(1e-6));
  CHECK(loss(logits, target, weight, Reduction::sum) == Approx(0.762135).epsilon(1e-6));
  CHECK(loss(logits, target, {}, Reduction::mean) == Approx(2.541645).epsilon(1e-6));
  const Tensor row = slice(logits, 0, 1, 2), row_target = slice(target, 0, 1, 2);
  for (const Tensor& w : {weight, Tensor()})
    for (Reduction r : {Reduction::mean, Reduction::sum})
      CHECK(loss(logits, target, w, r) == loss(row, row_target, w, r));
  logits.requires_grad_();
  cross_entropy(logits, target, {.weight = weight, .label_smoothing = 0.1}).backward();
  CHECK(near(logits.grad()[0], {0, 0}, 0));
}

TEST_CASE("everything ignored: the mean is NaN, the gradient 0", "[LOS-02]") {
  const Tensor x = tensor({{1, 2}, {3, 4}}).requires_grad_();
  const Tensor loss = cross_entropy(x, full({2}, -100, {i64}));
  CHECK(std::isnan(loss.item()));
  loss.backward();
  CHECK(near(x.grad(), {0, 0, 0, 0}, 0));
}

TEST_CASE("targets outside of the classes raise, whatever is ignored", "[LOS-03]") {
  const auto says = [](auto call) {
    try {
      call();
    } catch (const IndexError& e) {
      return std::string(e.what());
    }
    return std::string("nothing was raised");
  };
  const Tensor x = zeros({3, 5});
  for (Reduction r : {Reduction::none, Reduction::mean, Reduction::sum}) {
    CHECK(
        says([&] {
          cross_entropy(x, tensor<int64_t>({0, 1, -4}, {3}), {.ignore_index = -1, .reduction = r});
        }).find("target -4 of row 2") != std::string::npos);
    CHECK(says([&] {
            cross_entropy(x, tensor<int64_t>({0, 1, 5}, {3}), {.reduction = r});
          }).find("target 5 of row 2") != std::string::npos);
    CHECK(says([&] {
            nll_loss(x, tensor<int64_t>({0, 1, 5}, {3}), {.reduction = r});
          }).find("target 5 of row 2") != std::string::npos);
  }
  CHECK_THROWS_AS(embedding(tensor<int64_t>({0, 1, 5}, {3}), zeros({5, 2})), IndexError);
  CHECK_THROWS_AS(embedding(tensor<int64_t>({0, 1, -4}, {3}), zeros({5, 2})), IndexError);
}

TEST_CASE("an ignored value beyond the classes works in every reduction", "[LOS-03]") {
  const Tensor target = tensor<int64_t>({0, 1, 255, 0}, {4});
  for (Reduction r : {Reduction::none, Reduction::mean, Reduction::sum}) {
    const Tensor x = tensor({{1, 2, 3}, {0, 1, 0}, {5, 5, 5}, {2, 2, 0}}).requires_grad_();
    const Tensor loss = cross_entropy(x, target, {.ignore_index = 255, .reduction = r});
    if (r == Reduction::none) CHECK(loss[2].item() == 0);
    sum(loss).backward();
    CHECK(near(x.grad()[2], {0, 0, 0}, 0));
    CHECK(x.grad()[0][0].item() != 0);
  }
}

TEST_CASE("a regression loss broadcasts nothing", "[LOS-04]") {
  const Tensor row = tensor({1, 2, 3}), column = unsqueeze(row, 1);
  CHECK_THROWS_AS(mse_loss(column, row), ShapeError);
  CHECK_THROWS_AS(l1_loss(column, row), ShapeError);
  CHECK_THROWS_AS(smooth_l1_loss(column, row), ShapeError);
  CHECK_THROWS_AS(binary_cross_entropy_with_logits(column, row), ShapeError);
  CHECK(mse_loss(row, row).item() == 0);
  try {
    mse_loss(column, row);
  } catch (const ShapeError& e) {
    CHECK(std::string(e.what()).find("[3,1] and [3]") != std::string::npos);
  }
}

TEST_CASE("binary cross entropy of extreme logits", "[LOS-05]") {
  const auto loss = [](const Tensor& x, const Tensor& t, Tensor pos = {}) {
    return binary_cross_entropy_with_logits(x, t,
                                            {.pos_weight = pos, .reduction = Reduction::none});
  };
  for (const Tensor& pos : {Tensor(), ones({2})}) {
    const Tensor x = tensor({0, -120}).requires_grad_();
    const Tensor mean = binary_cross_entropy_with_logits(x, tensor({0, 1}), {.pos_weight = pos});
    CHECK(mean.item() == Approx(60.346574).epsilon(1e-7));
    mean.backward();
    CHECK(near(x.grad(), {0.25, -0.5}, 1e-7));
  }
  for (const Tensor& pos : {Tensor(), ones({4})}) {
    CHECK(near(loss(tensor({1000, 1000, -1000, -1000}), tensor({0, 1, 0, 1}), pos),
               {1000, 0, 0, 1000}, 0));
    CHECK(near(loss(tensor({-kInf, kInf, -kInf, kInf}), tensor({0, 0, 1, 1}), pos),
               {0, kInf, kInf, 0}, 0));
  }
  const Tensor zero = zeros({1}).requires_grad_();
  loss(zero, zeros({1})).backward();
  CHECK(zero.grad().item() == 0.5);
}

TEST_CASE("a loss keeps the tape and its gradient", "[AUT-13]") {
  const Tensor target = tensor<int64_t>({2}, {1});
  const std::vector<double> gradient = {0.090031, 0.244728, -0.334759};
  const Tensor x = tensor({{1, 2, 3}}).requires_grad_();
  const Tensor loss = cross_entropy(x, target);
  CHECK(loss.item() == Approx(0.407606).epsilon(1e-6));
  loss.backward();
  CHECK(near(x.grad(), gradient, 1e-6));
  const Tensor y = tensor({{1, 2, 3}}).requires_grad_();
  sum(cross_entropy(y, target, {.reduction = Reduction::none}) * 2).backward();
  CHECK(near(y.grad() / 2, gradient, 1e-6));

  const Tensor image = reshape(arange(64, {f32}), {2, 2, 4, 4}) * 0.1;
  image.requires_grad_();
  sum(log_softmax(image, -1) * reshape(arange(64, {f32}), {2, 2, 4, 4})).backward();
  CHECK(image.grad().shape() == Shape{2, 2, 4, 4});
  CHECK(near(sum(image.grad(), -1), std::vector<double>(16, 0), 1e-4));
  CHECK(max(abs(image.grad())).item() > 1);

  const Tensor constant = cross_entropy(tensor({{1, 2, 3}}), target);
  CHECK_THROWS_AS(constant.backward(), AutogradError);
}
