#include "ops/table.h"

namespace tg::test {
namespace {

const std::vector<Shape> kShapes = {{3, 5}, {2, 1, 4}, {0, 3}, {}, {1001}};
using From = Function<Tensor(const Tensor& x, Generator*)>;

// The driver seeds the generator before each call, so a draw is a function of shape and dtype. That
// equal seeds give equal bits, and what is drawn, is for random_test.cpp; here: dtypes, layouts,
// threads, gradients, misuse.
Row drawn(const std::string& name, const Draw& draw) {
  Row r{.name = name};
  const auto sample = [from = draw.from](const Shape& shape) {
    return Sample{
        {normal(shape)}, [from](const Tensors& x) -> Tensors { return {from(x[0], nullptr)}; }, ""};
  };
  for (const Shape& shape : kShapes) r.samples.push_back(sample(shape));
  r.large = [sample] { return sample({300, 400}); };
  r.draw = draw;
  return r;
}

// Made from nothing but a shape: that of x, and x's dtype.
Row made(const std::string& name, const Draw& draw) {
  Row r = drawn(name, draw);
  r.opt_outs = {{Part::gradient, "a draw has no derivative"}};
  return r;
}

Row written(const std::string& name, const Draw& draw,
            Function<const Tensor&(const Tensor&)> inplace) {
  Row r = drawn(name, draw);
  r.inplace = [inplace](const Tensors& x) -> Tensors { return {inplace(x[0])}; };
  r.opt_outs = {{Part::second_derivative, "the first derivative is a constant 0"},
                {Part::backward_split, "a gradient of 0 takes no work"}};
  return r;
}

Row rand_row() {
  Row r =
      made("rand",
           {.from = [](const Tensor& x, Generator* g) { return rand(x.shape(), x.options(), g); },
            .low = 0,
            .high = 1,
            .mean = 0.5,
            .variance = 1 / 12.,
            .fourth = 1 / 80.});
  r.fails = {{[]() -> Tensors { return {rand({2}, i32)}; },
              "rand: draws real numbers, but the tensor is i32"},
             {[]() -> Tensors {
                return {rand({2, -1})};
              },
              "-1"}};
  return r;
}

Row randn_row() {
  Row r =
      made("randn",
           {.from = [](const Tensor& x, Generator* g) { return randn(x.shape(), x.options(), g); },
            .low = -9,
            .high = 9,
            .mean = 0,
            .variance = 1,
            .fourth = 3});
  r.fails = {{[]() -> Tensors { return {randn({2}, boolean)}; },
              "randn: draws real numbers, but the tensor is bool"}};
  return r;
}

// Whole numbers 2 to 119, each as likely.
Row randint_row() {
  constexpr double n = 118;
  Row r = made("randint",
               {.from = [](const Tensor& x,
                           Generator* g) { return randint(2, 120, x.shape(), x.options(), g); },
                .low = 2,
                .high = 120,
                .mean = (2 + 119) / 2.,
                .variance = (n * n - 1) / 12,
                .fourth = (n * n - 1) * (3 * n * n - 7) / 240});
  r.dtypes = kNumbers;
  r.fails = {{[]() -> Tensors { return {randint(3, 3, {2})}; },
              "randint: low must be below high, got 3 3"},
             {[]() -> Tensors { return {randint(0, 257, {2}, u8)}; }, "256 does not fit u8"},
             {[]() -> Tensors { return {randint(-1, 2, {2}, u8)}; }, "-1 does not fit u8"},
             {[]() -> Tensors { return {randint(0, 2, {2}, boolean)}; }, "use bernoulli"}};
  return r;
}

Row uniform_row() {
  Row r =
      written("uniform_",
              {.from = [](const Tensor& x, Generator* g) { return uniform_(x.clone(), -1, 2, g); },
               .low = -1,
               .high = 2,
               .mean = 0.5,
               .variance = 9 / 12.,
               .fourth = 81 / 80.},
              [](const Tensor& x) -> const Tensor& { return uniform_(x, -1, 2); });
  r.fails = {{[]() -> Tensors { return {uniform_(zeros({2}), 2, 1)}; },
              "uniform_: no range of finite width: 2 1"}};
  return r;
}

Row normal_row() {
  Row r =
      written("normal_",
              {.from = [](const Tensor& x, Generator* g) { return normal_(x.clone(), 1, 2, g); },
               .low = -17,
               .high = 19,
               .mean = 1,
               .variance = 4,
               .fourth = 48},
              [](const Tensor& x) -> const Tensor& { return normal_(x, 1, 2); });
  r.fails = {
      {[]() -> Tensors { return {normal_(zeros({2}), 0, -1)}; }, "a finite std of 0 or more"},
      {[]() -> Tensors { return {normal_(zeros({2}, i64))}; }, "draws real numbers"}};
  return r;
}

Row bernoulli_row() {
  constexpr double p = 0.3125, spread = p * (1 - p);  // exact in bf16 too
  Row r = made("bernoulli",
               {.from = [](const Tensor& x, Generator* g) { return bernoulli(full_like(x, p), g); },
                .low = 0,
                .high = 2,
                .mean = p,
                .variance = spread,
                .fourth = spread * (1 - 3 * spread)});
  Call call = [](const Tensors& x) -> Tensors { return {bernoulli(x[0])}; };
  r.samples = {{{constant(unit({3, 5}))}, call, ""},
               {{constant(values({2, 2}, {0, 1, 1, 0}))}, call, "x0 * 1"},
               {{constant(unit({0, 3}))}, call, ""},
               {{constant(unit({}))}, call, ""}};
  r.large = [call] { return Sample{{constant(unit({300, 400}))}, call, ""}; };
  r.fails = {{[]() -> Tensors { return {bernoulli(full({2}, 1.5))}; },
              "bernoulli: a probability lies in [0,1], got 1.5"}};
  return r;
}

}  // namespace

Rows random_rows() {
  return {rand_row(), randn_row(), randint_row(), uniform_row(), normal_row(), bernoulli_row()};
}

}  // namespace tg::test
