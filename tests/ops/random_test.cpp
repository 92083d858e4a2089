// What the random operators of the table draw: equal bits for equal seeds, the stored bits of the
// generator, and the distribution that they promise.
#include <algorithm>
#include <bit>
#include <cmath>

#include "ops/driver.h"
#include "tapegrad/core/random.h"

using namespace tg;
using namespace tg::test;

namespace {

// Runs fn(row, draw, dtype) for every random operator and every dtype that it claims.
template <class F>
void for_each_draw(F fn) {
  int64_t rows = 0;
  for (const Family& family : families())
    for (const Row& row : family.rows)
      if (row.draw) {
        ++rows;
        for (DType dtype : row.dtypes) {
          INFO(row.name << " " << name_of(dtype));
          fn(row, *row.draw, dtype);
        }
      }
  CHECK(rows >= 6);
}

Tensor draw_of(const Draw& draw, const Shape& shape, DType dtype, uint64_t seed) {
  Generator g(seed);
  return draw.from(zeros(shape, dtype), &g);
}

}  // namespace

TEST_CASE("operator table: a seed gives its bits, and another seed others", "[table]") {
  for_each_draw([](const Row&, const Draw& draw, DType dtype) {
    const Tensor x = draw_of(draw, {50, 20}, dtype, 5);
    CHECK(x.shape() == Shape{50, 20});
    CHECK(x.dtype() == dtype);
    CHECK(same_bits(draw_of(draw, {50, 20}, dtype, 5), x));
    CHECK_FALSE(same_bits(draw_of(draw, {50, 20}, dtype, 6), x));
    // The shape is no part of it, and a longer draw begins as a shorter one.
    CHECK(same_bits(draw_of(draw, {1000}, dtype, 5), reshape(x, {1000})));
    CHECK(same_bits(slice(draw_of(draw, {1003}, dtype, 5), 0, 0, 1000), reshape(x, {1000})));
    // The default generator, and the second draw of one.
    manual_seed(5);
    CHECK(same_bits(draw.from(zeros({50, 20}, dtype), nullptr), x));
    CHECK_FALSE(same_bits(draw.from(zeros({50, 20}, dtype), nullptr), x));
  });
}

TEST_CASE("operator table: a draw of nothing takes nothing from the generator", "[table]") {
  for_each_draw([](const Row&, const Draw& draw, DType dtype) {
    Generator g(5);
    CHECK(draw.from(zeros({0, 3}, dtype), &g).shape() == Shape{0, 3});
    CHECK(g.state() == Generator(5).state());
    CHECK(draw.from(zeros({}, dtype), &g).dim() == 0);
    CHECK_FALSE(g.state() == Generator(5).state());
  });
}

TEST_CASE("operator table: draws lie in their range and have their moments", "[table]") {
  constexpr int64_t n = 100000;
  for_each_draw([](const Row&, const Draw& draw, DType dtype) {
    const std::vector<double> x = draw_of(draw, {n}, dtype, 11).to_vector<double>();
    CHECK(*std::min_element(x.begin(), x.end()) >= draw.low);
    CHECK(*std::max_element(x.begin(), x.end()) < draw.high);
    double sum = 0, squares = 0, neighbours = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double d = x[size_t(i)] - draw.mean;
      sum += d;
      squares += d * d;
      if (i > 0) neighbours += d * (x[size_t(i) - 1] - draw.mean);
    }
    // Five standard errors of each mean: a right generator fails one of these once in 1.7 million
    // seeds, and this seed is fixed.
    const double error = 5 / std::sqrt(double(n));
    CHECK(std::abs(sum / n) < error * std::sqrt(draw.variance));
    CHECK(std::abs(squares / n - draw.variance) <
          error * std::sqrt(draw.fourth - draw.variance * draw.variance));
    CHECK(std::abs(neighbours / n) < error * draw.variance);
  });
}

// Seed 1, offset 0: words and normals as tests/core/random_reference.py computes them. Every device
// must draw these.
TEST_CASE("operator table: the first numbers of a seed are the stored ones", "[table]") {
  constexpr uint32_t word[] = {0xe3e80670u, 0xe50a0ebcu, 0x95f222c0u, 0xb615aa27u};
  constexpr uint64_t wide[] = {0xe50a0ebce3e80670u, 0xb615aa2795f222c0u};
  constexpr uint32_t normal_f32[] = {0x3ec2c3e4u, 0xbe97b1beu, 0xbe7f370du, 0xbf807dbdu};
  constexpr uint64_t normal_f64[] = {0xbfbd1a253882cf80u, 0xbfdd4dbc714217a6u};
  const auto drawn = [](auto call) {
    Generator g(1);
    return Tensor(call(&g)).to_vector<double>();
  };
  std::vector<double> uniform32, uniform64, normal32, normal64, integers, hits;
  for (uint32_t w : word) uniform32.push_back(double(w >> 8) * 0x1p-24);
  for (uint64_t w : wide) uniform64.push_back(double(w >> 11) * 0x1p-53);
  for (uint32_t bits : normal_f32) normal32.push_back(std::bit_cast<float>(bits));
  for (uint64_t bits : normal_f64) normal64.push_back(std::bit_cast<double>(bits));
  // low + floor(wide * range / 2^64), by the upper half of the product.
  for (uint64_t w : wide) {
    const uint64_t range = 1000, low_half = (w & 0xffffffffu) * range;
    integers.push_back(double(((w >> 32) * range + (low_half >> 32)) >> 32) - 7);
  }
  for (double u : uniform32) hits.push_back(u < 0.75);

  CHECK(drawn([](Generator* g) { return rand({4}, f32, g); }) == uniform32);
  CHECK(drawn([](Generator* g) { return rand({2}, f64, g); }) == uniform64);
  CHECK(drawn([](Generator* g) { return uniform_(zeros({4}), 0, 1, g); }) == uniform32);
  CHECK(drawn([](Generator* g) { return randn({4}, f32, g); }) == normal32);
  CHECK(drawn([](Generator* g) { return randn({2}, f64, g); }) == normal64);
  CHECK(drawn([](Generator* g) { return normal_(zeros({2}, f64), 0, 1, g); }) == normal64);
  CHECK(drawn([](Generator* g) { return randint(-7, 993, {2}, i64, g); }) == integers);
  CHECK(drawn([](Generator* g) { return bernoulli(full({4}, 0.75), g); }) == hits);
  for (DType t : {f16, bf16}) {  // rounded from f32
    const Tensor exact = tensor(normal32, {4}, {f32});
    CHECK(drawn([t](Generator* g) { return randn({4}, t, g); }) ==
          cast(exact, t).to_vector<double>());
  }
}
