#include <cmath>

#include "ops/table.h"

namespace tg::test {
namespace {

constexpr double kNan = NAN, kInf = INFINITY;

using Binary = Tensor (*)(const Tensor&, const Tensor&);

Row no_derivative(Row row) {
  row.opt_outs = {{Part::gradient, "truth values have no derivative"}};
  return row;
}

Row compare_row(const std::string& name, Binary op, Tensor (*with_number)(const Tensor&, Scalar)) {
  const Call both = [op](const Tensors& x) -> Tensors { return {op(x[0], x[1])}; };
  const std::string torch = "torch." + name + "(x0, x1)";
  const auto sample = [=](Shape a, Shape b) { return Sample{{normal(a), normal(b)}, both, torch}; };
  Row row{.name = name};
  row.dtypes = kEveryDType;
  row.samples = {sample({3, 4}, {3, 4}), sample({2, 3, 4}, {4}), sample({3, 1}, {1, 5}),
                 sample({}, {3}), sample({0, 2}, {2})};
  row.samples.push_back({{values({7}, {kNan, 1, kInf, -kInf, 0, -0.0, 2}),
                          values({7}, {kNan, kNan, kInf, kInf, -0.0, 1, 1})},
                         both,
                         torch,
                         false});
  if (with_number)
    row.samples.push_back(
        {{normal({3, 4})},
         [with_number](const Tensors& x) -> Tensors { return {with_number(x[0], 0.5)}; },
         "torch." + name + "(x0, 0.5)"});
  row.samples.push_back({{normal({3, 4}), integers({4}, 0, 3)}, both, torch});
  row.samples.push_back({{normal({3, 4}), booleans({4})}, both, torch});
  row.large = [=] { return sample({330, 300}, {300}); };
  row.fails = {{[op]() -> Tensors {
                  return {op(zeros({2, 3}), zeros({4}))};
                },
                name + ": shapes do not broadcast: [2,3] [4]"}};
  return row;
}

Row test_row(const std::string& name, Tensor (*op)(const Tensor&)) {
  const Call call = [op](const Tensors& x) -> Tensors { return {op(x[0])}; };
  Row row{.name = name};
  row.dtypes = kEveryDType;
  const std::string torch = "torch." + name + "(x0)";
  row.samples = {{{normal({3, 4})}, call, torch},
                 {{normal({})}, call, torch},
                 {{normal({0, 2})}, call, torch},
                 {{values({6}, {kNan, kInf, -kInf, 0, -0.0, 1})}, call, torch, false}};
  row.large = [=] { return Sample{{normal({330, 300})}, call, torch}; };
  return row;
}

Row where_row() {
  const Call call = [](const Tensors& x) -> Tensors { return {where(x[0], x[1], x[2])}; };
  const auto sample = [=](Shape c, Shape a, Shape b) {
    return Sample{{booleans(c), normal(a), normal(b)}, call, "torch.where(x0, x1, x2)"};
  };
  Row row{.name = "where"};
  row.dtypes = kEveryDType;
  row.samples = {sample({3, 4}, {3, 4}, {3, 4}), sample({3, 1}, {4}, {}),
                 sample({4}, {2, 3, 4}, {3, 1}), sample({}, {}, {}), sample({0, 2}, {2}, {1, 2})};
  row.samples.push_back({{booleans({3, 4}), normal({3, 4})},
                         [](const Tensors& x) -> Tensors { return {where(x[0], x[1], 2)}; },
                         "torch.where(x0, x1, 2)"});
  row.samples.push_back(
      {{booleans({3, 4}), normal({3, 4}), integers({4}, 0, 9)}, call, "torch.where(x0, x1, x2)"});
  row.samples.push_back({{booleans({3, 4}), normal({4})},
                         [](const Tensors& x) -> Tensors { return {where(x[0], 2, x[1])}; },
                         "torch.where(x0, 2, x1)"});
  row.samples.push_back(
      {{booleans({4}), values({4}, {kNan, 1, kInf, 2}), values({4}, {1, kNan, 2, kInf})},
       call,
       "torch.where(x0, x1, x2)",
       false});
  row.fails = {{[]() -> Tensors { return {where(ones({2}), ones({2}), zeros({2}))}; },
                "the condition must be bool"},
               {[]() -> Tensors { return {where(ones({3}, boolean), ones({2}), zeros({2}))}; },
                "do not broadcast"}};
  row.large = [=] { return sample({330, 1}, {330, 300}, {300}); };
  return row;
}

// A bool as a tensor, for the table.
Tensor flag(bool value) { return scalar_tensor(value, boolean); }

Row equal_row() {
  const Call call = [](const Tensors& x) -> Tensors { return {flag(equal(x[0], x[1]))}; };
  const std::string torch = "torch.tensor(torch.equal(x0, x1))";
  Row row{.name = "equal"};
  row.dtypes = kEveryDType;
  row.samples = {{{normal({3, 4}), normal({3, 4})}, call, torch},
                 {{values({2}, {1, 2}), values({2}, {1, 2})}, call, torch},
                 {{values({2}, {1, kNan}), values({2}, {1, kNan})}, call, torch, false},
                 {{normal({}), normal({})}, call, torch},
                 {{normal({0}), normal({0})}, call, torch},
                 {{normal({2, 1}), normal({2})}, call, torch}};
  row.large = [call] { return Sample{{positive({330, 300}), positive({330, 300})}, call, ""}; };
  return row;
}

Row allclose_row() {
  const Call call = [](const Tensors& x) -> Tensors { return {flag(allclose(x[0], x[1]))}; };
  const std::string torch = "torch.tensor(torch.allclose(x0, x1))";
  Row row{.name = "allclose"};
  row.dtypes = kEveryDType;
  row.samples = {{{normal({3, 4}), normal({3, 4})}, call, torch},
                 {{values({2}, {1, 1000}), values({2}, {1.000009, 1000})}, call, torch},
                 {{values({2}, {1, kInf}), values({2}, {1, kInf})}, call, torch, false},
                 {{values({2}, {1, kInf}), values({2}, {1, -kInf})}, call, torch, false},
                 {{values({1}, {kNan}), values({1}, {kNan})}, call, torch, false},
                 {{normal({}), normal({})}, call, torch},
                 {{normal({0, 2}), normal({0, 2})}, call, torch}};
  row.fails = {
      {[]() -> Tensors { return {flag(allclose(ones({2}), ones({3})))}; }, "do not broadcast"}};
  row.large = [call] { return Sample{{positive({330, 300}), positive({330, 300})}, call, ""}; };
  return row;
}

}  // namespace

Rows comparison_rows() {
  Rows rows = {compare_row("eq", eq, eq),
               compare_row("ne", ne, ne),
               compare_row("lt", lt, lt),
               compare_row("le", le, le),
               compare_row("gt", gt, gt),
               compare_row("ge", ge, ge),
               compare_row("logical_and", logical_and, nullptr),
               compare_row("logical_or", logical_or, nullptr),
               compare_row("logical_xor", logical_xor, nullptr),
               test_row("logical_not", logical_not),
               test_row("isnan", isnan),
               test_row("isinf", isinf),
               test_row("isfinite", isfinite),
               equal_row(),
               allclose_row()};
  for (Row& row : rows) row = no_derivative(row);
  rows.push_back(where_row());
  return rows;
}

}  // namespace tg::test
