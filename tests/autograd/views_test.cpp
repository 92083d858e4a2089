#include "tapegrad/autograd/ops/views.h"

#include "catch.h"
#include "tapegrad/autograd/engine.h"
#include "tapegrad/autograd/grad_mode.h"
#include "tapegrad/autograd/ops/arithmetic.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/joining.h"
#include "tapegrad/autograd/ops/reduction.h"

using namespace tg;
using Values = std::vector<double>;

namespace {
Tensor counting(const Shape& shape) { return reshape(arange(shape.numel(), f64), shape); }

// d(sum y * w)/dx with w = 1, 2, 3, ... in the order of y.
Values gradient(const Tensor& x, const Tensor& y) {
  return grad(y, x, {.gradients = {counting(y.shape()) + 1}, .retain_graph = true})
      .to_vector<double>();
}
}  // namespace

TEST_CASE("views: reshape views where it can", "[ops]") {
  Tensor x = counting({2, 3, 4});
  CHECK(reshape(x, {6, -1}).shape() == Shape{6, 4});
  CHECK(reshape(x, {6, 4}).shares_storage(x));
  CHECK(view(x, {2, 12}).shares_storage(x));
  Tensor t = transpose(x, 0, 1);
  CHECK_FALSE(reshape(t, {6, 4}).shares_storage(x));
  CHECK(reshape(t, {6, 4}).to_vector<double>() == contiguous(t).to_vector<double>());
  CHECK(reshape(t, {3, 2, 2, 2}).shares_storage(x));
  CHECK_THROWS_AS(view(t, {6, 4}), ShapeError);
  CHECK_THROWS_WITH(view(channels_last(counting({1, 2, 3, 4})), {24}),
                    Catch::Contains("channels-last: use reshape"));
  CHECK_THROWS_AS(reshape(x, {5, -1}), ShapeError);
  CHECK_THROWS_AS(reshape(x, {-1, -1}), ShapeError);
  CHECK_THROWS_AS(reshape(x, {-2, 12}), ShapeError);
  CHECK_THROWS_AS(reshape(zeros({0, 3}), {0, -1}), ShapeError);
  CHECK(reshape(zeros({0, 3}), {3, -1}).shape() == Shape{3, 0});
  CHECK(reshape(zeros({}), {1, 1}).shape() == Shape{1, 1});
  CHECK(reshape(zeros({1, 1}), {}).dim() == 0);
  CHECK(reshape(select(counting({3, 2}), 1, 1), {3, 1}).to_vector<double>() == Values{1, 3, 5});
  // A broadcast dimension can be split but not joined with another.
  Tensor e = expand(reshape(arange(2, f64), {1, 2}), {4, 2});
  CHECK(view(e, {2, 2, 2}).shares_storage(e));
  CHECK_THROWS_AS(view(e, {8}), ShapeError);
}

TEST_CASE("views: values and strides", "[ops]") {
  Tensor x = counting({2, 3});
  CHECK(t(x).to_vector<double>() == Values{0, 3, 1, 4, 2, 5});
  CHECK(permute(counting({2, 1, 3}), {2, 0, 1}).shape() == Shape{3, 2, 1});
  CHECK(transpose(counting({3, 1}), 0, 1).strides() == Shape{3, 1});
  CHECK(transpose(zeros({}), 0, -1).dim() == 0);
  CHECK(expand(reshape(x, {2, 1, 3}), {2, 2, -1}).to_vector<double>() ==
        Values{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5});
  CHECK(slice(x, 1, -2, 100).to_vector<double>() == Values{1, 2, 4, 5});
  CHECK(slice(x, 1, 0, 3, 2).to_vector<double>() == Values{0, 2, 3, 5});
  CHECK(slice(x, 0, 2, 1).shape() == Shape{0, 3});
  CHECK(narrow(x, 1, -2, 1).to_vector<double>() == Values{1, 4});
  CHECK(x[-1].to_vector<double>() == Values{3, 4, 5});
  CHECK(unfold(arange(5, f64), 0, 3, 2).to_vector<double>() == Values{0, 1, 2, 2, 3, 4});
  CHECK(diagonal(x).to_vector<double>() == Values{0, 4});
  CHECK(diagonal(x, 1).to_vector<double>() == Values{1, 5});
  CHECK(diagonal(x, -1).to_vector<double>() == Values{3});
  CHECK(diagonal(x, 9).numel() == 0);
  CHECK(as_strided(x, {2, 2}, {1, 2}, 1).to_vector<double>() == Values{1, 3, 2, 4});
  CHECK(squeeze(counting({1, 2, 1})).shape() == Shape{2});
  CHECK(squeeze(counting({1, 2, 1}), 1).shape() == Shape{1, 2, 1});
  CHECK(unsqueeze(x, -1).shape() == Shape{2, 3, 1});
  CHECK(flatten(counting({2, 3, 4}), 1).shape() == Shape{2, 12});
  CHECK(flatten(zeros({})).shape() == Shape{1});
}

TEST_CASE("views: errors say what is wrong", "[ops]") {
  Tensor x = counting({2, 3});
  CHECK_THROWS_WITH(x[2], Catch::Contains("index 2 is out of range for dim 0 of size 2"));
  CHECK_THROWS_AS(select(zeros({}), 0, 0), IndexError);
  CHECK_THROWS_AS(transpose(x, 0, 2), IndexError);
  CHECK_THROWS_AS(permute(x, {0, 0}), ShapeError);
  CHECK_THROWS_AS(permute(x, {0}), ShapeError);
  CHECK_THROWS_AS(expand(x, {4, 3}), ShapeError);
  CHECK_THROWS_AS(expand(x, {-1, 2, 3}), ShapeError);
  CHECK_THROWS_AS(slice(x, 0, 0, 2, 0), ValueError);
  CHECK_THROWS_AS(narrow(x, 1, 2, 2), IndexError);
  CHECK_THROWS_AS(unfold(x, 1, 4, 1), ShapeError);
  CHECK_THROWS_AS(diagonal(x, 0, 1, 1), ShapeError);
  CHECK_THROWS_AS(as_strided(x, {2, 3}, {3, 2}, 0), ShapeError);
  CHECK_THROWS_AS(as_strided(x, {1}, {INT64_MAX}, -1), ShapeError);
  CHECK_THROWS_AS(as_strided(x, {3}, {INT64_MAX}, 0), ShapeError);
}

TEST_CASE("views: gradients", "[ops]") {
  Tensor x = counting({2, 3}).requires_grad_();
  CHECK(gradient(x, t(x)) == Values{1, 3, 5, 2, 4, 6});
  CHECK(gradient(x, reshape(t(x), {6})) == Values{1, 3, 5, 2, 4, 6});
  CHECK(gradient(x, slice(x, 1, 0, 3, 2)) == Values{1, 0, 2, 3, 0, 4});
  CHECK(gradient(x, x[1]) == Values{0, 0, 0, 1, 2, 3});
  CHECK(gradient(x, expand(x, {2, 2, 3})) == Values{8, 10, 12, 14, 16, 18});
  CHECK(gradient(x, diagonal(x, 1)) == Values{0, 1, 0, 0, 0, 2});
  CHECK(gradient(x, unfold(x, 1, 2, 1)) == Values{1, 5, 4, 5, 13, 8});
  CHECK(gradient(x, permute(x, {1, 0})) == Values{1, 3, 5, 2, 4, 6});
  CHECK(gradient(x, flatten(unsqueeze(x, 1))) == Values{1, 2, 3, 4, 5, 6});
  CHECK(gradient(x, slice(x, 0, 1, 1)) == Values(6, 0));
}

TEST_CASE("views: as_strided counts every place that shows an element", "[ops]") {
  Tensor x = arange(4, f64).requires_grad_();
  CHECK(gradient(x, as_strided(x, {2, 3}, {1, 1}, 0)) == Values{1, 6, 8, 6});
  CHECK(gradient(x, as_strided(x, {2, 2}, {0, 1}, 1)) == Values{0, 4, 6, 0});
  // Over a base that is not contiguous itself.
  Tensor y = t(counting({2, 3}).requires_grad_());
  CHECK(gradient(y, as_strided(y, {2}, {4}, 1)) == Values{0, 0, 1, 0, 0, 2});
  // Over an expanded base: its showings share the gradient, so that the leaf gets all of it.
  Tensor z = arange(2, f64).requires_grad_();
  Tensor e = expand(unsqueeze(z, 1), {2, 4});
  CHECK(gradient(z, as_strided(e, {3}, {0}, 1)) == Values{0, 6});
  Tensor half = cast(arange(4), bf16).requires_grad_();
  Tensor many = as_strided(half, {512}, {0}, 1);
  Tensor g = grad(many, half, {.gradients = {ones({512}, bf16)}});
  CHECK(g.to_vector<double>() == Values{0, 512, 0, 0});
}

TEST_CASE("views: second derivatives pass through", "[ops]") {
  Tensor x = counting({3, 4}).requires_grad_();
  for (int kind = 0; kind < 6; ++kind) {
    CAPTURE(kind);
    auto part = [&](const Tensor& v) {
      switch (kind) {
        case 0:
          return slice(v, 1, 1, 4, 2);
        case 1:
          return unfold(v, 1, 2, 1);
        case 2:
          return as_strided(v, {3, 2}, {3, 1}, 1);
        case 3:
          return diagonal(t(v));
        case 4:
          return expand(v[1], {2, 4});
        default:
          return reshape(t(v), {2, 6});
      }
    };
    Tensor y = part(x);
    Tensor dx = grad(sum(y * y * y), x, {.create_graph = true});
    Tensor ddx = grad(sum(dx), x);
    // d(sum 3 y^2 showing)/dx = 6 x * (number of showings)
    NoGradGuard no_grad;
    Tensor v = ones({3, 4}, f64).requires_grad_();
    EnableGradGuard grad_mode;
    Tensor showings = grad(sum(part(v)), v);
    CHECK(ddx.to_vector<double>() == (showings * x.detach() * 6).to_vector<double>());
  }
}

TEST_CASE("views: writing through a view gives right gradients", "[ops]") {
  Tensor a = ones({2, 3}, f64).requires_grad_();
  Tensor x = a * 2;
  mul_(slice(t(x), 0, 1, 3), 5);
  CHECK(x.to_vector<double>() == Values{2, 10, 10, 2, 10, 10});
  CHECK(gradient(a, x) == Values{2, 20, 30, 8, 50, 60});
}

TEST_CASE("joining: cat and stack", "[ops]") {
  Tensor a = counting({1, 2}), b = counting({2, 2}) + 10;
  CHECK(cat({a, b}).to_vector<double>() == Values{0, 1, 10, 11, 12, 13});
  CHECK(cat({t(b), t(b)}, 1).to_vector<double>() == Values{10, 12, 10, 12, 11, 13, 11, 13});
  CHECK(cat({cast(a, i32), cast(b, f32)}).dtype() == f32);
  CHECK(cat({cast(a, f16), cast(b, bf16)}).dtype() == f32);
  CHECK(cat({zeros({0, 2}, f64), a}).to_vector<double>() == Values{0, 1});
  CHECK(cat({zeros({0, 2}), zeros({0, 2})}).shape() == Shape{0, 2});
  CHECK(stack({b, b}, 1).shape() == Shape{2, 2, 2});
  CHECK(stack({b, b}, 2).to_vector<double>() == Values{10, 10, 11, 11, 12, 12, 13, 13});
  CHECK(stack({scalar_tensor(1), scalar_tensor(2)}).to_vector<double>() == Values{1, 2});
  CHECK_THROWS_AS(cat({}), ShapeError);
  CHECK_THROWS_AS(cat({a, counting({1, 3})}), ShapeError);
  CHECK_THROWS_AS(cat({a, counting({2})}), ShapeError);
  CHECK_THROWS_AS(cat({scalar_tensor(1)}), ShapeError);
  CHECK_THROWS_AS(stack({a, b}), ShapeError);
  Tensor image = channels_last(counting({1, 2, 3, 4}));
  CHECK(cat({image, image}, 1).is_channels_last());
  CHECK(cat({image, image}, 1).to_vector<double>() ==
        cat({contiguous(image), contiguous(image)}, 1).to_vector<double>());
}

TEST_CASE("joining: gradients in the inputs' dtypes", "[ops]") {
  Tensor a = counting({2, 1}).requires_grad_();
  Tensor b = cast(counting({2, 2}), f32).requires_grad_();
  Tensor y = cat({a, b}, 1);
  auto g = grad({y}, {a, b}, {.gradients = {counting({2, 3})}});
  CHECK(g[0].to_vector<double>() == Values{0, 3});
  CHECK(g[1].to_vector<double>() == Values{1, 2, 4, 5});
  CHECK(g[1].dtype() == f32);
}

TEST_CASE("joining: split and chunk are views", "[ops]") {
  Tensor x = counting({5, 2});
  auto parts = split(x, 2);
  REQUIRE(parts.size() == 3);
  CHECK(parts[2].to_vector<double>() == Values{8, 9});
  CHECK(parts[0].shares_storage(x));
  CHECK(split(x, std::vector<int64_t>{1, 4})[1].shape() == Shape{4, 2});
  CHECK_THROWS_AS(split(x, std::vector<int64_t>{1, 3}), ShapeError);
  CHECK_THROWS_AS(split(x, 0), ValueError);
  CHECK(chunk(x, 4).size() == 3);
  CHECK(chunk(zeros({0, 2}), 2).size() == 2);
  CHECK(split(zeros({0, 2}), 3).size() == 1);
}
