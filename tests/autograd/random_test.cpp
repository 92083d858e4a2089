#include "tapegrad/autograd/ops/random.h"

#include <algorithm>
#include <cmath>

#include "catch.h"
#include "tapegrad/autograd/engine.h"
#include "tapegrad/autograd/ops/arithmetic.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/views.h"
#include "tapegrad/core/parallel.h"
#include "tapegrad/core/philox.h"
#include "tapegrad/core/random.h"

using namespace tg;
using Values = std::vector<double>;
using Ints = std::vector<int64_t>;

namespace {
double mean_of(const Values& v) {
  double sum = 0;
  for (double x : v) sum += x;
  return sum / double(v.size());
}
double variance_of(const Values& v) {
  double m = mean_of(v), sum = 0;
  for (double x : v) sum += (x - m) * (x - m);
  return sum / double(v.size());
}
}  // namespace

TEST_CASE("random: elements are those of the generator's blocks", "[ops]") {
  Generator g(42);
  Values x = rand({7}, f32, &g).to_vector<double>();
  Values n = randn({3}, f64, &g).to_vector<double>();
  RandomState state{42, 0, 0};
  for (int64_t i = 0; i < 7; ++i) {
    float block[4];
    uniform_block(random_block(state, uint64_t(i / 4)), block);
    CHECK(x[size_t(i)] == block[i % 4]);
  }
  state.offset = 2;  // seven floats took two blocks
  for (int64_t i = 0; i < 3; ++i) {
    double block[2];
    normal_block(random_block(state, uint64_t(i / 2)), block);
    CHECK(n[size_t(i)] == block[i % 2]);
  }
  CHECK(g.state().offset == 4);
  Generator again(42);
  CHECK(rand({7}, f32, &again).to_vector<double>() == x);
  manual_seed(42);
  CHECK(rand({7}).to_vector<double>() == x);
}

TEST_CASE("random: threads, layout and dtype do not change the numbers", "[ops]") {
  int before = num_threads();
  std::vector<float> first;
  for (int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    Generator g(3);
    auto x = randn({50001}, f32, &g).to_vector<float>();
    if (first.empty()) first = x;
    CHECK(x == first);
  }
  set_num_threads(before);
  Generator a(5), b(5), c(5), d(5);
  Tensor x = randn({3, 4}, f32, &a);
  Tensor storage = zeros({4, 6});
  Tensor view = slice(transpose(storage, 0, 1), 0, 0, 6, 2);
  normal_(view, 0, 1, &b);
  CHECK(view.to_vector<double>() == x.to_vector<double>());
  CHECK(slice(storage, 1, 1, 6, 2).to_vector<double>() == Values(12, 0));
  CHECK(randn({3, 4}, bf16, &c).to_vector<double>() == cast(x, bf16).to_vector<double>());
  CHECK(randn({3, 4}, f16, &d).to_vector<double>() == cast(x, f16).to_vector<double>());
}

TEST_CASE("random: moments and bounds", "[ops]") {
  manual_seed(1);
  int64_t n = 200000;
  // Five standard errors each way.
  double se = 5 / std::sqrt(double(n));
  for (DType t : {f32, f64}) {
    Values u = rand({n}, t).to_vector<double>();
    CHECK(*std::min_element(u.begin(), u.end()) >= 0);
    CHECK(*std::max_element(u.begin(), u.end()) < 1);
    CHECK(std::abs(mean_of(u) - 0.5) < se * std::sqrt(1 / 12.));
    CHECK(std::abs(variance_of(u) - 1 / 12.) < se * std::sqrt(1 / 180.));
    Values z = normal_(zeros({n}, t), 2, 3).to_vector<double>();
    CHECK(std::abs(mean_of(z) - 2) < 3 * se);
    CHECK(std::abs(variance_of(z) - 9) < 9 * std::sqrt(2.) * se);
  }
  for (DType t : {f16, bf16}) {
    Values u = rand({n}, t).to_vector<double>();
    CHECK(*std::max_element(u.begin(), u.end()) < 1);
    Values w = uniform_(zeros({n}, t), -3, -2).to_vector<double>();
    CHECK(*std::max_element(w.begin(), w.end()) < -2);
    CHECK(*std::min_element(w.begin(), w.end()) >= -3);
  }
  CHECK(uniform_(zeros({3}), 2, 2).to_vector<double>() == Values{2, 2, 2});
  Values b = bernoulli(full({n}, 0.3)).to_vector<double>();
  CHECK(std::abs(mean_of(b) - 0.3) < se * std::sqrt(0.21));
  CHECK(bernoulli(tensor({0, 1, 0, 1})).to_vector<double>() == Values{0, 1, 0, 1});
}

TEST_CASE("random: whole numbers are evenly spread over any range", "[ops]") {
  manual_seed(2);
  int64_t n = 60000;
  std::vector<double> counts(6, 0);
  for (int64_t v : randint(-2, 4, {n}).to_vector<int64_t>()) {
    REQUIRE((v >= -2 && v < 4));
    ++counts[size_t(v + 2)];
  }
  double chi2 = 0;  // five degrees of freedom: above 30 once in 80,000 times
  for (double c : counts) chi2 += (c - 1e4) * (c - 1e4) / 1e4;
  CHECK(chi2 < 30);
  // A range of 3 * 2^62 out of 2^64: a remainder would give the lower third half of the draws.
  Ints wide = randint(INT64_MIN, INT64_MAX, {n}).to_vector<int64_t>();
  CHECK(std::abs(double(std::count_if(wide.begin(), wide.end(), [](int64_t v) { return v < 0; })) -
                 double(n) / 2) < 5 * std::sqrt(double(n) / 4));
  for (DType t : {f32, f64, f16, i8, u8, i16, i32})
    for (double v : randint(3, 5, {100}, t).to_vector<double>()) REQUIRE((v == 3 || v == 4));
  Ints p = randperm(1000).to_vector<int64_t>();
  CHECK(p[0] != 0);
  std::sort(p.begin(), p.end());
  CHECK(p == arange(1000).to_vector<int64_t>());
  CHECK(randperm(0).numel() == 0);
}

TEST_CASE("random: bad input", "[ops]") {
  CHECK_THROWS_AS(rand({2}, i32), DTypeError);
  CHECK_THROWS_AS(normal_(zeros({2}, i64)), DTypeError);
  CHECK_THROWS_AS(normal_(zeros({2}), 0, -1), ValueError);
  CHECK_THROWS_AS(normal_(zeros({2}), NAN, 1), ValueError);
  CHECK_THROWS_AS(uniform_(zeros({2}), 1, 0), ValueError);
  CHECK_THROWS_AS(uniform_(zeros({2}), 0, INFINITY), ValueError);
  CHECK_THROWS_AS(randint(2, 2, {1}), ValueError);
  CHECK_THROWS_AS(randint(0, 300, {1}, u8), ValueError);
  CHECK_THROWS_AS(randint(0, 2, {1}, boolean), DTypeError);
  CHECK_THROWS_AS(randperm(-1), ValueError);
  CHECK_THROWS_AS(bernoulli(tensor({1.5})), ValueError);
  CHECK_THROWS_AS(bernoulli(tensor({NAN})), ValueError);
  CHECK_THROWS_AS(bernoulli(zeros({2}, i32)), DTypeError);
  CHECK_THROWS_AS(normal_(zeros({2}).requires_grad_()), AutogradError);
  CHECK_THROWS_AS(normal_(expand(zeros({1}), {2})), ValueError);
  CHECK(rand({0, 3}).shape() == Shape{0, 3});
  CHECK(rand({}).dim() == 0);
  Tensor a = ones({2}, f64).requires_grad_();
  Tensor x = a * 2;
  normal_(x[0]);
  CHECK(grad(x, a, {.gradients = {ones({2}, f64)}}).to_vector<double>() == Values{0, 2});
}
