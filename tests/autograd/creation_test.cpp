#include "tapegrad/autograd/ops/creation.h"

#include "catch.h"
#include "tapegrad/autograd/engine.h"
#include "tapegrad/autograd/ops/views.h"

using namespace tg;
using Values = std::vector<double>;

TEST_CASE("creation: filled tensors of every dtype", "[ops]") {
  for (DType t : {f32, f64, f16, bf16, i8, u8, i16, i32, i64, boolean}) {
    CAPTURE(name_of(t));
    CHECK(zeros({2, 2}, t).to_vector<double>() == Values(4, 0));
    CHECK(full({3}, 1, t).to_vector<double>() == Values(3, 1));
    CHECK(ones({0, 4}, t).numel() == 0);
    CHECK(full({}, 1, t).item() == 1);
  }
  CHECK_THROWS_AS(full({2}, 300, i8), ValueError);
  CHECK_THROWS_AS(full({2}, -1, u8), ValueError);
  CHECK_THROWS_AS(full({2}, std::nan(""), i32), ValueError);
  CHECK_THROWS_AS(full({2}, 9.3e18, i64), ValueError);
  CHECK(full({1}, INT64_MIN, i64).item_int64() == INT64_MIN);
  CHECK_THROWS_AS(zeros({2, -1}), ShapeError);
  CHECK_THROWS_AS(zeros({int64_t(1) << 40, int64_t(1) << 40}), ShapeError);
}

TEST_CASE("creation: arange, linspace, eye", "[ops]") {
  CHECK(arange(5).to_vector<int64_t>() == std::vector<int64_t>{0, 1, 2, 3, 4});
  CHECK(arange(1, 2.5, 0.5, f32).to_vector<double>() == Values{1, 1.5, 2});
  CHECK(arange(5, 0, -2, i32).to_vector<double>() == Values{5, 3, 1});
  CHECK(arange(0).numel() == 0);
  CHECK(arange(INT64_MAX - 2, INT64_MAX, 1, i64).to_vector<int64_t>() ==
        std::vector<int64_t>{INT64_MAX - 2, INT64_MAX - 1});
  CHECK_THROWS_AS(arange(0, 5, 0, f32), ValueError);
  CHECK_THROWS_AS(arange(0, 5, -1, f32), ValueError);
  CHECK_THROWS_AS(arange(0, 300, 1, u8), ValueError);
  CHECK(linspace(0, 1, 5, f64).to_vector<double>() == Values{0, 0.25, 0.5, 0.75, 1});
  CHECK(linspace(0.1, 0.7, 7, f64).to_vector<double>().back() == 0.7);
  CHECK(linspace(3, 4, 1).to_vector<double>() == Values{3});
  CHECK(eye(2).to_vector<double>() == Values{1, 0, 0, 1});
  CHECK(eye(0).numel() == 0);
}

TEST_CASE("creation: tensor() takes values of any type", "[ops]") {
  CHECK(tensor({1, 2.5}).dtype() == f32);
  CHECK(tensor({{1, 2}, {3, 4}}, i32).to_vector<int>() == std::vector<int>{1, 2, 3, 4});
  CHECK(tensor(std::vector<bool>{true, false}, {2}).dtype() == boolean);
  CHECK(tensor(std::vector<bool>{true, false}, {2}).to_vector<bool>() ==
        std::vector<bool>{true, false});
  CHECK(tensor(std::vector<int64_t>{1, 2}, {2, 1}, f64).dtype() == f64);
  CHECK_THROWS_AS(tensor(std::vector<float>{1, 2}, {3}), ShapeError);
  CHECK_THROWS_AS(tensor({{1, 2}, {3}}), ShapeError);
}

TEST_CASE("creation: braces around one number make a row of it", "[ops]") {
  CHECK(tensor({{1.0}, {2.0}}).shape() == Shape{2, 1});
  CHECK(tensor({{1.0}, {2.0}}).to_vector<double>() == Values{1, 2});
  CHECK(tensor({{3}}).shape() == Shape{1, 1});
  CHECK(tensor({{1, 2}}).shape() == Shape{1, 2});
  CHECK(tensor({{1}, {2}}, i64).dtype() == i64);
  CHECK(tensor({1.0, 2.0}).shape() == Shape{2});
  CHECK(tensor({3}).shape() == Shape{1});
  float a = 1, b = 2;
  int64_t i = 3;
  CHECK(tensor({a, b}).to_vector<double>() == Values{1, 2});
  CHECK(tensor({i, i + 1}, i64).to_vector<int64_t>() == std::vector<int64_t>{3, 4});
  // Whole numbers arrive whole, also where a double would round them.
  CHECK(tensor({(int64_t(1) << 53) + 1}, i64).item_int64() == (int64_t(1) << 53) + 1);
  CHECK(tensor({true, false}, boolean).to_vector<bool>() == std::vector<bool>{true, false});
}

TEST_CASE("creation: a tensor without dimensions has no sizes to ask for", "[ops]") {
  CHECK(ones({2, 3}).size(-1) == 3);
  CHECK(ones({2, 3}).shape()[-2] == 2);
  CHECK_THROWS_AS(ones({2, 3}).size(2), IndexError);
  CHECK_THROWS_AS(ones({}).size(0), IndexError);
  CHECK_THROWS_AS(ones({}).size(-1), IndexError);
  CHECK_THROWS_AS(ones({}).shape()[-1], IndexError);
}

TEST_CASE("creation: cast follows C++ and is differentiable between floats", "[ops]") {
  Tensor x = tensor({-1.9, 0, 0.5, 2.7}, f64);
  CHECK(cast(x, i32).to_vector<double>() == Values{-1, 0, 0, 2});
  CHECK(cast(x, boolean).to_vector<double>() == Values{1, 0, 1, 1});
  CHECK(cast(x, f64).same(x));
  x.requires_grad_();
  Tensor y = cast(x, f32);
  y.backward(tensor({1, 2, 3, 4}));
  CHECK(x.grad().dtype() == f64);
  CHECK(x.grad().to_vector<double>() == Values{1, 2, 3, 4});
  CHECK(!cast(x, i64).requires_grad());
}

TEST_CASE("creation: clone keeps a dense layout, contiguous makes one", "[ops]") {
  Tensor x = reshape(arange(6), {2, 3});
  Tensor y = transpose(x, 0, 1);
  CHECK(clone(y).strides() == Shape{1, 3});
  CHECK(contiguous(y).is_contiguous());
  CHECK(contiguous(y).to_vector<double>() == Values{0, 3, 1, 4, 2, 5});
  CHECK(contiguous(x).same(x));
  CHECK(clone(expand(x, {2, 2, 3})).is_contiguous());
  Tensor image = channels_last(reshape(arange(24), {1, 2, 3, 4}));
  CHECK(image.is_channels_last());
  CHECK(image.to_vector<double>() == arange(24).to_vector<double>());
  CHECK(clone(image).is_channels_last());
  CHECK_THROWS_AS(channels_last(x), ShapeError);
}

TEST_CASE("creation: copy_ broadcasts, converts, and sees old values of overlapping memory",
          "[ops]") {
  Tensor x = zeros({2, 3}, i32);
  copy_(x, tensor({1.9, -2, 3}));
  CHECK(x.to_vector<double>() == Values{1, -2, 3, 1, -2, 3});
  CHECK_THROWS_AS(copy_(x, zeros({2})), ShapeError);
  CHECK_THROWS_AS(copy_(x, zeros({1, 2, 3})), ShapeError);
  Tensor t = tensor({1, 2, 3, 4, 5});
  copy_(slice(t, 0, 1, 5), slice(t, 0, 0, 4));
  CHECK(t.to_vector<double>() == Values{1, 1, 2, 3, 4});
  Tensor m = tensor({{1, 2}, {3, 4}});
  copy_(m, transpose(m, 0, 1));
  CHECK(m.to_vector<double>() == Values{1, 3, 2, 4});
  copy_(m, m);
  CHECK(m.to_vector<double>() == Values{1, 3, 2, 4});
}

TEST_CASE("creation: gradients of copy_ and fill_", "[ops]") {
  Tensor a = ones({2, 3}, f64).requires_grad_();
  Tensor b = tensor({1, 2, 3}, f32).requires_grad_();
  Tensor x = clone(a);
  copy_(select(x, 0, 1), b);
  x.backward(tensor({{1, 2, 3}, {4, 5, 6}}, f64));
  CHECK(a.grad().to_vector<double>() == Values{1, 2, 3, 0, 0, 0});
  CHECK(b.grad().to_vector<double>() == Values{4, 5, 6});
  Tensor y = clone(a);
  fill_(slice(y, 1, 0, 3, 2), 7);
  CHECK(y.to_vector<double>() == Values{7, 1, 7, 7, 1, 7});
  CHECK(grad(y, a, {.gradients = {ones({2, 3}, f64)}}).to_vector<double>() ==
        Values{0, 1, 0, 0, 1, 0});
  CHECK_THROWS_AS(fill_(a, 1), AutogradError);
  CHECK_THROWS_AS(fill_(expand(ones({1, 3}), {2, 3}), 1), ValueError);
}
