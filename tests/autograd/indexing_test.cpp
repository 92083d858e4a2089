#include "tapegrad/autograd/ops/indexing.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "catch.h"
#include "tapegrad/autograd/engine.h"
#include "tapegrad/autograd/grad_mode.h"
#include "tapegrad/autograd/ops/arithmetic.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/embedding.h"
#include "tapegrad/autograd/ops/sorting.h"
#include "tapegrad/autograd/ops/views.h"
#include "tapegrad/core/parallel.h"

using namespace tg;
using Values = std::vector<double>;
using Ints = std::vector<int64_t>;

namespace {
Tensor counting(const Shape& shape) { return reshape(arange(shape.numel(), f64), shape); }
Tensor ints(const Ints& v) { return tensor(v, {int64_t(v.size())}); }
Tensor bools(const std::vector<bool>& v) { return tensor(v, {int64_t(v.size())}); }

// d(sum y * w)/dx with w = 1, 2, 3, ... in the order of y.
Values gradient(const Tensor& x, const Tensor& y) {
  return grad(y, x, {.gradients = {counting(y.shape()) + 1}, .retain_graph = true})
      .to_vector<double>();
}
}  // namespace

TEST_CASE("index: integers and slices give views", "[ops]") {
  Tensor x = counting({2, 3, 4});
  CHECK(x.index({1, -1, 2}).item() == 22);
  CHECK(x.index({1}).shares_storage(x));
  CHECK(x.index({slice(), 0}).shape() == Shape{2, 4});
  CHECK(x.index({ellipsis, slice(none, none, 2)}).shape() == Shape{2, 3, 2});
  CHECK(x.index({none, ellipsis, none, 3}).shape() == Shape{1, 2, 3, 1});
  CHECK(x.index({slice(-1), slice(1, -1), slice(0, 100, 3)}).to_vector<double>() == Values{16, 19});
  CHECK(x.index({}).shape() == x.shape());
  CHECK_THROWS_WITH(x.index({0, 3}),
                    Catch::Contains("index 3 is out of range for dim 1 of size 3"));
  CHECK_THROWS_AS(x.index({0, 0, 0, 0}), IndexError);
  CHECK_THROWS_AS(x.index({ellipsis, ellipsis}), IndexError);
}

// Shapes and values from NumPy; with an integer beside tensors, from PyTorch.
TEST_CASE("index: where the dimensions of tensors go", "[ops]") {
  Tensor x = counting({2, 3, 4, 5});
  Tensor i = ints({1, 0});
  CHECK(x.index({slice(), i, i}).shape() == Shape{2, 2, 5});
  CHECK(x.index({i, slice(), i}).shape() == Shape{2, 3, 5});
  CHECK(x.index({slice(), i, slice(), i}).shape() == Shape{2, 2, 4});
  CHECK(x.index({slice(), i, none, i}).shape() == Shape{2, 2, 1, 5});
  CHECK(x.index({0, slice(), i}).shape() == Shape{3, 2, 5});
  CHECK(x.index({ellipsis, i}).shape() == Shape{2, 3, 4, 2});
  CHECK(x.index({slice(), reshape(i, {2, 1}), tensor(Ints{0, 1, 3}, {3})}).shape() ==
        Shape{2, 2, 3, 5});
  CHECK(x.index({tensor(Ints{1}, {})}).shape() == Shape{3, 4, 5});
  CHECK(x.index({scalar_tensor(true, boolean)}).shape() == Shape{1, 2, 3, 4, 5});
  CHECK(x.index({scalar_tensor(false, boolean)}).shape() == Shape{0, 2, 3, 4, 5});
  CHECK(x.index({i, scalar_tensor(true, boolean)}).shape() == Shape{2, 3, 4, 5});
  CHECK(x.index({slice(), i, i, slice(0, 1)}).to_vector<double>() == Values{25, 0, 85, 60});
  CHECK(x.index({i, slice(0, 1), i, 2}).to_vector<double>() == Values{67, 2});
  CHECK(x.index({ints({-1}), ints({-3}), ints({-4}), ints({0, -1})}).to_vector<double>() ==
        Values{60, 64});
}

TEST_CASE("index: masks and empty selections", "[ops]") {
  Tensor x = counting({2, 3});
  CHECK(x.index({slice(), bools({true, false, true})}).to_vector<double>() == Values{0, 2, 3, 5});
  CHECK(x.index({tensor(std::vector<bool>{0, 1, 0, 0, 0, 1}, {2, 3})}).to_vector<double>() ==
        Values{1, 5});
  CHECK(x.index({ints({0, 1}), bools({false, true, true})}).to_vector<double>() == Values{1, 5});
  CHECK(x.index({bools({false, false})}).shape() == Shape{0, 3});
  CHECK(x.index({ints({})}).shape() == Shape{0, 3});
  CHECK(zeros({3, 0}).index({ints({0, 2})}).shape() == Shape{2, 0});
  CHECK(zeros({0, 3}).index({ints({})}).shape() == Shape{0, 3});
  CHECK_THROWS_AS(zeros({3, 0}).index({ints({3})}), IndexError);
  CHECK_THROWS_AS(zeros({0, 3}).index({ints({0})}), IndexError);
  CHECK_THROWS_AS(x.index({bools({true})}), IndexError);
  CHECK_THROWS_AS(x.index({tensor({0, 1})}), DTypeError);
  CHECK_THROWS_AS(x.index({ints({0, 1}), ints({0, 1, 2})}), ShapeError);
  CHECK_THROWS_WITH(x.index({slice(), ints({0, 7})}),
                    Catch::Contains("index 7 is out of range for dim 1 of size 3"));
  CHECK_THROWS_WITH(x.index({0, ints({-4})}),
                    Catch::Contains("index -4 is out of range for dim 1 of size 3"));
  for (DType t : {f32, f16, bf16, i8, u8, i16, i32, i64, boolean}) {
    CAPTURE(name_of(t));
    CHECK(cast(x, t).index({ints({1, 0}), ints({2, 1})}).to_vector<double>() ==
          cast(tensor({5, 1}), t).to_vector<double>());
  }
}

TEST_CASE("index: a transposed or broadcast source", "[ops]") {
  Tensor x = t(counting({3, 2}));  // [[0,2,4],[1,3,5]]
  CHECK(x.index({slice(), ints({2, 0, 2})}).to_vector<double>() == Values{4, 0, 4, 5, 1, 5});
  CHECK(x.index({ints({1, 1})}).to_vector<double>() == Values{1, 3, 5, 1, 3, 5});
  CHECK(expand(tensor({1, 2}), {3, 2}).index({ints({2, 0}), slice(1)}).to_vector<double>() ==
        Values{2, 2});
}

TEST_CASE("index: gradients count every occurrence", "[ops]") {
  Tensor x = counting({2, 3}).requires_grad_();
  CHECK(gradient(x, x.index({ints({1, 1})})) == Values{0, 0, 0, 5, 7, 9});
  CHECK(gradient(x, x.index({slice(), ints({0, 2, 0})})) == Values{4, 0, 2, 10, 0, 5});
  CHECK(gradient(x, x.index({ints({0, 1}), ints({2, 2})})) == Values{0, 0, 1, 0, 0, 2});
  CHECK(gradient(x, x.index({slice(1, 2), tensor(std::vector<bool>{1, 0, 1}, {3})})) ==
        Values{0, 0, 0, 1, 0, 2});
  Tensor half = cast(zeros({2}), bf16).requires_grad_();
  Tensor y = half.index({zeros({1000}, i64)});
  CHECK(grad(y, half, {.gradients = {ones({1000}, bf16)}}).to_vector<double>() == Values{1000, 0});
  // The index may not change between forward and backward unseen.
  Tensor at = ints({0, 1});
  Tensor z = x.index({at});
  fill_(at, 0);
  CHECK_THROWS_AS(gradient(x, z), AutogradError);
}

TEST_CASE("index_put_: values, order, errors leave everything as it was", "[ops]") {
  Tensor x = zeros({2, 3}, f64);
  x.index_put_({ints({1, 0}), ints({2, 0})}, tensor({5, 6}));
  CHECK(x.to_vector<double>() == Values{6, 0, 0, 0, 0, 5});
  x.index_put_({slice(), ints({1, 1})}, tensor({{1, 2}, {3, 4}}));  // the last one stays
  CHECK(x.to_vector<double>() == Values{6, 2, 0, 0, 4, 5});
  x.index_put_({tensor(std::vector<bool>{1, 0, 0, 1, 0, 0}, {2, 3})}, -1);
  CHECK(x.to_vector<double>() == Values{-1, 2, 0, -1, 4, 5});
  x.index_put_({0}, ones({1, 1, 3}));
  CHECK(x.to_vector<double>() == Values{1, 1, 1, -1, 4, 5});
  index_put_(x, {ints({0, 0, 1})}, scalar_tensor(1), true);
  CHECK(x.to_vector<double>() == Values{3, 3, 3, 0, 5, 6});
  index_put_(x, {1}, ones({3}), true);
  CHECK(x.to_vector<double>() == Values{3, 3, 3, 1, 6, 7});
  CHECK_THROWS_AS(x.index_put_({ints({0, 2})}, 9), IndexError);
  CHECK_THROWS_AS(x.index_put_({ints({0, 1})}, zeros({2, 2})), ShapeError);
  CHECK_THROWS_AS(expand(zeros({1, 3}), {2, 3}).index_put_({ints({0})}, 9), ValueError);
  CHECK(x.to_vector<double>() == Values{3, 3, 3, 1, 6, 7});
  Tensor half = zeros({1}, bf16);
  index_put_(half, {zeros({1000}, i64)}, ones({}, bf16), true);
  CHECK(half.item() == 1000);
  Tensor self = ints({1, 2, 0});
  self.index_put_({self}, self);  // self[i[k]] = i[k] with the old values
  CHECK(self.to_vector<int64_t>() == Ints{0, 1, 2});
  Tensor rows = counting({3, 2});
  rows.index_put_({ints({0, 1})}, slice(rows, 0, 1, 3));
  CHECK(rows.to_vector<double>() == Values{2, 3, 4, 5, 4, 5});
}

TEST_CASE("index_put_: gradients", "[ops]") {
  Tensor a = ones({2, 3}, f64).requires_grad_();
  Tensor v = ones({2}, f64).requires_grad_();
  Tensor x = clone(a);
  x.index_put_({ints({1, 0}), ints({2, 0})}, v);
  CHECK(gradient(a, x) == Values{0, 2, 3, 4, 5, 0});
  CHECK(gradient(v, x) == Values{6, 1});
  x = clone(a);
  x.index_put_({1, ints({2, 2})}, v);  // the first is overwritten: no gradient
  CHECK(x.to_vector<double>() == Values(6, 1));
  CHECK(gradient(v, x) == Values{0, 6});
  x = clone(a);
  index_put_(x, {1, ints({2, 2})}, v, true);
  CHECK(gradient(v, x) == Values{6, 6});
  CHECK(gradient(a, x) == Values{1, 2, 3, 4, 5, 6});
  // Through a view of a non-leaf; the value broadcasts over rows.
  x = a * 2;
  t(x).index_put_({bools({true, false, true})}, v);
  CHECK(gradient(a, x) == Values{0, 4, 0, 0, 10, 0});
  CHECK(gradient(v, x) == Values{4, 10});
  CHECK_THROWS_AS(a.index_put_({ints({0})}, 1), AutogradError);
}

TEST_CASE("index_select, gather, scatter_add", "[ops]") {
  Tensor x = counting({2, 3});
  CHECK(index_select(x, 1, ints({2, 0})).to_vector<double>() == Values{2, 0, 5, 3});
  CHECK(index_select(x, 0, tensor(Ints{1}, {}, i32)).to_vector<double>() == Values{3, 4, 5});
  CHECK(index_select(scalar_tensor(5), 0, ints({0})).dim() == 0);
  CHECK_THROWS_AS(index_select(x, 0, ints({-1})), IndexError);
  CHECK_THROWS_AS(index_select(x, 0, zeros({1, 1}, i64)), ShapeError);
  CHECK_THROWS_AS(index_select(x, 0, tensor({0.5})), DTypeError);
  Tensor at = tensor(Ints{2, 0, 1, 1}, {2, 2});
  CHECK(gather(x, 1, at).to_vector<double>() == Values{2, 0, 4, 4});
  CHECK(gather(x, 0, tensor(Ints{1, 0}, {1, 2})).to_vector<double>() == Values{3, 1});
  CHECK(gather(t(x), 0, t(at)).to_vector<double>() == Values{2, 4, 0, 4});
  CHECK(gather(x, 1, zeros({2, 0}, i64)).shape() == Shape{2, 0});
  CHECK(gather(scalar_tensor(3), 0, zeros({}, i64)).item() == 3);
  CHECK_THROWS_WITH(gather(x, 1, ones({2, 2}, i64) * 3),
                    Catch::Contains("index 3 is out of range for dim 1 of size 3"));
  CHECK_THROWS_AS(gather(x, 1, ones({2, 2}, i64) * -1), IndexError);
  CHECK_THROWS_AS(gather(x, 1, zeros({3, 2}, i64)), ShapeError);
  CHECK_THROWS_AS(gather(x, 1, zeros({2}, i64)), ShapeError);
  Tensor y = scatter_add(x, 1, at, tensor({{10, 20, 99}, {30, 40, 99}}, f64));
  CHECK(y.to_vector<double>() == Values{20, 1, 12, 3, 74, 5});
  CHECK_THROWS_AS(scatter_add(x, 1, at, zeros({2, 2}, f32)), DTypeError);
  CHECK_THROWS_AS(scatter_add(x, 1, at, zeros({2, 1}, f64)), ShapeError);
  Tensor z = clone(x);
  CHECK_THROWS_AS(scatter_add_(z, 1, tensor(Ints{0, 3}, {1, 2}), ones({1, 2}, f64)), IndexError);
  CHECK(z.to_vector<double>() == x.to_vector<double>());
  scatter_add_(z, 0, tensor(Ints{1, 1}, {2, 1}), reshape(tensor({1, 2}, f64), {2, 1}));
  CHECK(z.to_vector<double>() == Values{0, 1, 2, 6, 4, 5});
}

TEST_CASE("gather, scatter_add, masked_fill, triangles: gradients", "[ops]") {
  Tensor x = counting({2, 3}).requires_grad_();
  Tensor at = tensor(Ints{2, 2, 1, 0}, {2, 2});
  CHECK(gradient(x, gather(x, 1, at)) == Values{0, 0, 3, 4, 3, 0});
  CHECK(gradient(x, index_select(x, 1, ints({1, 1}))) == Values{0, 3, 0, 0, 7, 0});
  Tensor s = ones({2, 3}, f64).requires_grad_();
  Tensor y = scatter_add(x, 1, at, s);
  CHECK(gradient(x, y) == Values{1, 2, 3, 4, 5, 6});
  CHECK(gradient(s, y) == Values{3, 3, 0, 5, 4, 0});
  CHECK(gradient(x, masked_fill(x, bools({false, true, false}), 7)) == Values{1, 0, 3, 4, 0, 6});
  CHECK(gradient(x, masked_select(x, bools({false, true, true}))) == Values{0, 1, 2, 0, 3, 4});
  CHECK(gradient(x, tril(x)) == Values{1, 0, 0, 4, 5, 0});
  CHECK(gradient(x, triu(x, 1)) == Values{0, 2, 3, 0, 0, 6});
  Tensor z = x * 1;
  masked_fill_(z[1], bools({false, true, true}), 0);
  CHECK(gradient(x, z) == Values{1, 2, 3, 4, 0, 0});
}

TEST_CASE("masked_fill, masked_select, nonzero, tril, triu, one_hot", "[ops]") {
  Tensor x = counting({2, 3});
  Tensor mask = bools({true, false, false});
  CHECK(masked_fill(x, mask, -1).to_vector<double>() == Values{-1, 1, 2, -1, 4, 5});
  CHECK(masked_fill(t(x), bools({true, false}), -1).to_vector<double>() ==
        Values{-1, 3, -1, 4, -1, 5});
  CHECK(
      masked_fill(tensor({1, 2}), tensor(std::vector<bool>{1, 0}, {2, 1}), 0).to_vector<double>() ==
      Values{0, 0, 1, 2});
  CHECK(std::isinf(masked_fill(tensor({1.f}), bools({true}), -INFINITY).item()));
  CHECK_THROWS_AS(masked_fill(x, tensor({1, 0, 0}), 0), DTypeError);
  CHECK_THROWS_AS(masked_fill(cast(x, u8), mask, 256), ValueError);
  CHECK_THROWS_AS(masked_fill_(x, zeros({2, 2, 3}, boolean), 0), ShapeError);
  CHECK(masked_select(x, mask).to_vector<double>() == Values{0, 3});
  CHECK(masked_select(scalar_tensor(4), scalar_tensor(true, boolean)).shape() == Shape{1});
  CHECK(nonzero(tensor({{0, 2}, {std::nan(""), -0.0}})).to_vector<int64_t>() == Ints{0, 1, 1, 0});
  CHECK(nonzero(t(tensor({{0, 2}, {3, 0}}))).to_vector<int64_t>() == Ints{0, 1, 1, 0});
  CHECK(nonzero(scalar_tensor(1)).shape() == Shape{1, 0});
  CHECK(nonzero(scalar_tensor(0)).shape() == Shape{0, 0});
  CHECK(nonzero(zeros({0, 3})).shape() == Shape{0, 2});
  Tensor m = counting({3, 3}) + 1;
  CHECK(tril(m, -1).to_vector<double>() == Values{0, 0, 0, 4, 0, 0, 7, 8, 0});
  CHECK(tril(m, INT64_MAX).to_vector<double>() == m.to_vector<double>());
  CHECK(triu(m, INT64_MAX).to_vector<double>() == Values(9, 0));
  CHECK(triu(t(m), INT64_MIN).to_vector<double>() == t(m).to_vector<double>());
  CHECK(tril(m, INT64_MIN).to_vector<double>() == Values(9, 0));
  CHECK_THROWS_AS(tril(zeros({3})), ShapeError);
  CHECK(one_hot(ints({2, 0})).to_vector<double>() == Values{0, 0, 1, 1, 0, 0});
  CHECK(one_hot(tensor(Ints{1}, {}), 2).to_vector<double>() == Values{0, 1});
  CHECK(one_hot(zeros({0}, i64), 3).shape() == Shape{0, 3});
  CHECK_THROWS_AS(one_hot(ints({3}), 3), IndexError);
  CHECK_THROWS_AS(one_hot(zeros({0}, i64)), ValueError);
}

TEST_CASE("sort, argsort, topk", "[ops]") {
  double nan = std::nan("");
  Tensor x = tensor({{3, nan, 1, 3}, {-0.0, 0, -INFINITY, nan}});
  auto [v, i] = sort(x);
  CHECK(i.to_vector<int64_t>() == Ints{2, 0, 3, 1, 2, 0, 1, 3});
  CHECK(slice(v, 1, 0, 3).to_vector<double>() == Values{1, 3, 3, -INFINITY, 0, 0});
  CHECK(argsort(x, -1, true).to_vector<int64_t>() == Ints{1, 0, 3, 2, 3, 0, 1, 2});
  CHECK(argsort(x, 0).to_vector<int64_t>() == Ints{1, 1, 1, 0, 0, 0, 0, 1});
  CHECK(topk(x, 2).second.to_vector<int64_t>() == Ints{1, 0, 3, 0});
  CHECK(topk(x, 2, 1, false).second.to_vector<int64_t>() == Ints{2, 0, 2, 0});
  CHECK(topk(x, 0).first.shape() == Shape{2, 0});
  CHECK(sort(scalar_tensor(3)).second.item() == 0);
  CHECK(sort(zeros({2, 0})).first.shape() == Shape{2, 0});
  CHECK(sort(zeros({0, 2})).first.shape() == Shape{0, 2});
  CHECK_THROWS_AS(topk(x, 5), ValueError);
  CHECK_THROWS_AS(sort(x, 2), IndexError);
  for (DType t : {f64, f16, bf16, i8, u8, i16, i32, i64, boolean}) {
    CAPTURE(name_of(t));
    Tensor y = cast(tensor({1, 0, 1, 0, 0}), t);
    CHECK(sort(y).first.to_vector<double>() == Values{0, 0, 0, 1, 1});
    CHECK(argsort(y, 0, true).to_vector<int64_t>() == Ints{0, 2, 1, 3, 4});
  }
  CHECK(sort(tensor(Ints{-1, 5, INT64_MIN, INT64_MAX}, {4})).second.to_vector<int64_t>() ==
        Ints{2, 0, 1, 3});
}

TEST_CASE("sort: long lines, gradients", "[ops]") {
  int64_t n = 5000;
  std::vector<float> values;
  for (int64_t k = 0; k < n; ++k) values.push_back(float(k * 7919 % 1009) - 500);
  Tensor x = tensor(values, {n});
  for (bool descending : {false, true}) {
    Ints expected;
    for (int64_t k = 0; k < n; ++k) expected.push_back(k);
    std::stable_sort(expected.begin(), expected.end(), [&](int64_t a, int64_t b) {
      float p = values[size_t(a)], q = values[size_t(b)];
      return descending ? p > q : p < q;
    });
    CHECK(argsort(x, 0, descending).to_vector<int64_t>() == expected);
    expected.resize(100);
    CHECK(topk(x, 100, 0, descending).second.to_vector<int64_t>() == expected);
  }
  Tensor y = tensor({3, 1, 2}, f64).requires_grad_();
  CHECK(gradient(y, sort(y).first) == Values{3, 1, 2});
  CHECK(gradient(y, topk(y, 2).first) == Values{1, 0, 2});
}

TEST_CASE("indexing: the same bits for any number of threads", "[ops]") {
  int before = num_threads();
  int64_t rows = 700, columns = 150, picks = 1500;
  std::vector<float> values;
  Ints at, lines;
  for (int64_t k = 0; k < picks * columns; ++k) values.push_back(1.f / float(1 + k * 31 % 977));
  for (int64_t k = 0; k < picks; ++k) at.push_back(k * k % 37);
  for (int64_t k = 0; k < picks * columns; ++k) lines.push_back(k * 17 % rows);
  Tensor v = tensor(values, {picks, columns}), index = tensor(at, {picks});
  Tensor line = tensor(lines, {picks, columns});
  std::vector<std::vector<float>> first;
  for (int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    std::vector<std::vector<float>> now;
    Tensor x = zeros({rows, columns});
    now.push_back(index_put_(x, {index}, v, true).to_vector<float>());
    now.push_back(index_put_(x, {index}, v).to_vector<float>());
    now.push_back(index_put_(t(zeros({columns, rows})), {index}, v, true).to_vector<float>());
    now.push_back(scatter_add(zeros({rows, columns}), 0, line, v).to_vector<float>());
    now.push_back(gather(x, 0, line).to_vector<float>());
    now.push_back(index_select(v, 1, index).to_vector<float>());
    now.push_back(sort(v, 0).first.to_vector<float>());
    now.push_back(masked_select(v, cast(line, boolean)).to_vector<float>());
    if (first.empty()) first = now;
    CHECK(now == first);
  }
  set_num_threads(before);
}
