#include "ops/table.h"

namespace tg::test {
namespace {

// The driver seeds the generator before each call, so a draw is a function of the shape. What the
// numbers are is fixed by the tests of the generator; here: layouts, threads, gradients, misuse.
Row drawn(const std::string& name, const Tensor& (*op)(const Tensor&)) {
  Row r{.name = name};
  for (const Shape& shape : {Shape{3, 5}, Shape{2, 1, 4}, Shape{0, 3}, Shape{}, Shape{1001}})
    r.samples.push_back(
        {{normal(shape)}, [op](const Tensors& x) -> Tensors { return {op(x[0].clone())}; }, ""});
  r.inplace = [op](const Tensors& x) -> Tensors { return {op(x[0])}; };
  r.opt_outs = {{Part::second_derivative, "the first derivative is a constant 0"},
                {Part::backward_split, "a gradient of 0 takes no work"}};
  r.large = [op] {
    return Sample{
        {normal({300, 400})}, [op](const Tensors& x) -> Tensors { return {op(x[0].clone())}; }, ""};
  };
  return r;
}

Row bernoulli_row() {
  Row r{.name = "bernoulli"};
  Call call = [](const Tensors& x) -> Tensors { return {bernoulli(x[0])}; };
  r.samples = {{{constant(unit({3, 5}))}, call, ""},
               {{constant(values({2, 2}, {0, 1, 1, 0}))}, call, "x0 * 1"},
               {{constant(unit({0, 3}))}, call, ""},
               {{constant(unit({}))}, call, ""}};
  r.opt_outs = {{Part::gradient, "a draw has no derivative"}};
  r.fails = {{[]() -> Tensors { return {bernoulli(full({2}, 1.5))}; },
              "bernoulli: a probability lies in [0,1], got 1.5"}};
  r.large = [call] { return Sample{{constant(unit({300, 400}))}, call, ""}; };
  return r;
}

}  // namespace

Rows random_rows() {
  Row uniform =
      drawn("uniform_", [](const Tensor& x) -> const Tensor& { return uniform_(x, -1, 2); });
  uniform.fails = {{[]() -> Tensors { return {uniform_(zeros({2}), 2, 1)}; },
                    "uniform_: no range of finite width: 2 1"}};
  Row normals = drawn("normal_", [](const Tensor& x) -> const Tensor& { return normal_(x, 1, 2); });
  normals.fails = {
      {[]() -> Tensors { return {normal_(zeros({2}), 0, -1)}; }, "a finite std of 0 or more"},
      {[]() -> Tensors { return {normal_(zeros({2}, i64))}; }, "draws real numbers"}};
  return {uniform, normals, bernoulli_row()};
}

}  // namespace tg::test
