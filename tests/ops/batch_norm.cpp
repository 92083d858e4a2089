#include "ops/table.h"

namespace tg::test {
namespace {

// x0 input, x1 weight, x2 bias.
Sample training(Shape shape, double eps = 1e-5) {
  const int64_t channels = shape[1];
  return {{normal(shape), normal({channels}), normal({channels})},
          [=](const Tensors& x) -> Tensors {
            return {batch_norm(x[0], {}, {}, x[1], x[2], {.training = true, .eps = eps})};
          },
          "F.batch_norm(x0, None, None, x1, x2, True, 0.1, " + to_text(eps) + ")"};
}

// x0 input, x1 running mean, x2 running variance, x3 weight, x4 bias.
Sample evaluation(Shape shape) {
  const int64_t channels = shape[1];
  return {{normal(shape), constant(normal({channels})), constant(positive({channels})),
           normal({channels}), normal({channels})},
          [](const Tensors& x) -> Tensors { return {batch_norm(x[0], x[1], x[2], x[3], x[4])}; },
          "F.batch_norm(x0, x1, x2, x3, x4, False)"};
}

// No weight, no bias; the running estimates after the step are outputs too, without a derivative
// though they move with x: so no gradcheck.
Sample running(Shape shape) {
  const int64_t channels = shape[1];
  return {{normal(shape), constant(normal({channels})), constant(positive({channels}))},
          [](const Tensors& x) -> Tensors {
            const Tensor mean = x[1].clone(), var = x[2].clone();
            const Tensor y =
                batch_norm(x[0], mean, var, {}, {}, {.training = true, .momentum = 0.25});
            return {y, mean, var};
          },
          "(lambda m, v: (F.batch_norm(x0, m, v, None, None, True, 0.25), m, v))(x1.clone(), "
          "x2.clone())",
          false};
}

}  // namespace

Rows batch_norm_rows() {
  Row row{.name = "batch_norm"};
  row.ulps = 24;  // sums of all values of a channel, a root and a quotient
  row.samples = {training({3, 4, 2, 5}),    training({7, 3}),         training({2, 3, 11}, 0.1),
                 training({2, 2, 3, 2, 2}), training({2, 20, 3, 3}),  evaluation({2, 3, 4, 3}),
                 evaluation({1, 5}),        evaluation({0, 3, 2, 2}), running({3, 4, 2, 3}),
                 running({9, 17}),          evaluation({2, 18, 2, 3})};
  row.fails = {
      {[]() -> Tensors { return {batch_norm(zeros({4}), {}, {}, {}, {}, {.training = true})}; },
       "takes [N,C,...], got [4]"},
      {[]() -> Tensors {
         return {batch_norm(zeros({2, 3}), {}, {}, zeros({2}), {}, {.training = true})};
       },
       "weight of shape [2] does not fit the 3 channels of input [2,3]"},
      {[]() -> Tensors {
         return {batch_norm(zeros({2, 3}), {}, {})};
       },
       "evaluation needs running_mean and running_var"},
      {[]() -> Tensors {
         return {batch_norm(zeros({2, 3}), zeros({3}), {})};
       },
       "one of them is undefined"},
      {[]() -> Tensors {
         return {batch_norm(zeros({1, 3, 1, 1}), {}, {}, {}, {}, {.training = true})};
       },
       "training needs more than one value per channel, input [1,3,1,1]"},
      {[]() -> Tensors {
         return {batch_norm(zeros({2, 3}), {}, {}, zeros({3}, f64), {}, {.training = true})};
       },
       "weight is"},
  };
  row.no_0d = {"there is no dimension of channels",
               []() -> Tensors { return {batch_norm(zeros({}), zeros({1}), ones({1}))}; },
               "batch_norm: takes [N,C,...], got []"};
  row.optional = {1, 2, 3, 4};  // weight, bias, and in training the running estimates
  row.large = [] { return training({8, 40, 33, 31}); };
  return {row};
}

}  // namespace tg::test
