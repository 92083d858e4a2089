#include <cmath>

#include "ops/table.h"

namespace tg::test {
namespace {

constexpr double kNan = NAN, kInf = INFINITY;

using Binary = Tensor (*)(const Tensor&, const Tensor&);
using InPlace = const Tensor& (*)(const Tensor&, const Tensor&);

Call call(Binary op) {
  return [op](const Tensors& x) -> Tensors { return {op(x[0], x[1])}; };
}
Call with_number(Tensor (*op)(const Tensor&, Scalar), Scalar s) {
  return [op, s](const Tensors& x) -> Tensors { return {op(x[0], s)}; };
}
Call number_first(Tensor (*op)(Scalar, const Tensor&), Scalar s) {
  return [op, s](const Tensors& x) -> Tensors { return {op(s, x[0])}; };
}

// Same shapes, each kind of broadcasting, 0-d, empty, mixed dtypes, and the ends of the number
// line.
Row binary_row(const std::string& name, Binary op, InPlace inplace, In (*second)(Shape) = normal,
               In (*first)(Shape) = normal) {
  Row row{.name = name};
  row.dtypes = kEveryDType;
  const std::string torch = "torch." + name + "(x0, x1)";
  const auto sample = [=](Shape a, Shape b) {
    return Sample{{first(a), second(b)}, call(op), torch};
  };
  row.samples = {sample({3, 4}, {3, 4}), sample({2, 3, 4}, {4}), sample({3, 1}, {1, 5}),
                 sample({2, 3}, {}),     sample({}, {}),         sample({5}, {2, 1, 1}),
                 sample({0, 3}, {3}),    sample({1}, {4}),       sample({2, 3, 4, 5}, {3, 1, 5}),
                 sample({4, 0}, {4, 1})};
  row.samples.push_back({{first({3, 4}), integers({3, 4}, 1, 5)}, call(op), torch});
  row.samples.push_back({{values({7}, {kInf, -kInf, kNan, 0, 1, -0.0, 3}),
                          values({7}, {kInf, 1, 2, 0, kNan, 5, -kInf})},
                         call(op),
                         torch,
                         false});
  if (inplace)
    row.inplace = [inplace](const Tensors& x) -> Tensors { return {inplace(x[0], x[1])}; };
  row.large = [=] { return sample({330, 300}, {300}); };
  row.flops = [](const Tensors&, const Tensors& y) { return double(y[0].numel()); };
  row.fails = {{[op]() -> Tensors {
                  return {op(zeros({2, 3}), zeros({4}))};
                },
                name + ": shapes do not broadcast: [2,3] [4]"}};
  return row;
}
// ... and a bool operand, as a mask has it.
Row with_mask(Row row, Binary op) {
  row.samples.push_back(
      {{normal({3, 4}), booleans({4})}, call(op), "torch." + row.name + "(x0, x1)"});
  return row;
}

// With a number on the right, 2 for a matrix and 2.5 for a single element.
Row number_row(const std::string& name, const std::string& sign,
               Tensor (*op)(const Tensor&, Scalar),
               const Tensor& (*inplace)(const Tensor&, Scalar)) {
  const Call call = with_number(op, 2);
  Row row{.name = name + ".number"};
  row.dtypes = kEveryDType;
  row.samples = {{{normal({3, 4})}, call, "x0 " + sign + " 2"},
                 {{normal({2, 3, 5})}, call, "x0 " + sign + " 2"},
                 {{normal({0})}, call, "x0 " + sign + " 2"},
                 {{normal({})}, with_number(op, 2.5), "x0 " + sign + " 2.5"}};
  row.inplace = [inplace](const Tensors& x) -> Tensors {
    return {x[0].defined() && x[0].dim() == 0 ? inplace(x[0], 2.5) : inplace(x[0], 2)};
  };
  row.large = [=] { return Sample{{normal({330, 300})}, call, ""}; };
  return row;
}
Row number_first_row(const std::string& name, const std::string& sign,
                     Tensor (*op)(Scalar, const Tensor&)) {
  Row row{.name = name + ".from_number"};
  row.dtypes = kEveryDType;
  for (Shape shape : {Shape{3, 4}, Shape{2, 3, 5}, Shape{0}, Shape{}})
    row.samples.push_back({{normal(shape)}, number_first(op, 3), "3 " + sign + " x0"});
  row.large = [op] { return Sample{{normal({330, 300})}, number_first(op, 3), ""}; };
  return row;
}

Row add_row() {
  Row row = with_mask(binary_row("add", add, add_), add);
  return with_fails(
      row, {{[]() -> Tensors {
               return {add_(zeros({2}), zeros({3, 2}))};
             },
             "[3,2]"},
            {[]() -> Tensors { return {add_(zeros({2}, i32), 1.5)}; }, "the result is f32"},
            {[]() -> Tensors { return {add_(zeros({2}, boolean), 1)}; }, "the result is i64"},
            {[]() -> Tensors { return {add_(zeros({2}, boolean), zeros({2}, u8))}; },
             "the result is u8"}});
}

// The differences with bool that raise, as in PyTorch.
std::vector<Fails> no_bool() {
  const std::string way_out = "bool has no differences; use logical_xor";
  return {{[]() -> Tensors { return {zeros({2}, boolean) - zeros({2}, boolean)}; }, way_out},
          {[]() -> Tensors { return {zeros({2}) - zeros({2}, boolean)}; }, way_out},
          {[]() -> Tensors { return {zeros({2}, boolean) - zeros({2})}; }, way_out},
          {[]() -> Tensors { return {zeros({2}, boolean) - 1}; }, way_out},
          {[]() -> Tensors { return {zeros({2}) - true}; }, way_out},
          {[]() -> Tensors { return {1 - zeros({2}, boolean)}; }, way_out},
          {[]() -> Tensors { return {sub_(zeros({2}, boolean), zeros({2}, boolean))}; }, way_out},
          {[]() -> Tensors { return {sub_(zeros({2}), zeros({2}, boolean))}; }, way_out},
          {[]() -> Tensors { return {sub_(zeros({2}, boolean), true)}; }, way_out}};
}

Row sub_row() {
  Row row = with_fails(binary_row("sub", sub, sub_), no_bool());
  row.dtypes = kNumbers;
  return row;
}

Row mul_row() {
  Row row = with_mask(binary_row("mul", mul, mul_), mul);
  return with_fails(row, {{[]() -> Tensors {
                             return {mul_(zeros({2, 2}), zeros({3}))};
                           },
                           "mul_: "}});
}

Row div_row() {
  Row row = with_mask(binary_row("div", div, div_), div);
  row.samples.back().smooth = false;  // by 0
  return with_fails(row,
                    {{[]() -> Tensors { return {div_(zeros({2}, i64), 2)}; }, "the result is f32"},
                     {[]() -> Tensors { return {div_(zeros({2}, boolean), zeros({2}, boolean))}; },
                      "the result is f32"}});
}

Row pow_row() {
  Row row = binary_row("pow", pow, nullptr, normal, positive);
  row.dtypes = kNumbers;
  row.samples.pop_back();  // the ends are below, value by value
  row.samples.push_back({{values({9}, {kInf, 0, 0, 0, 1, kNan, 2, -2, kInf}),
                          values({9}, {0, 0, 1, 2, kInf, 0, -kInf, 3, -1})},
                         call(pow),
                         "torch.pow(x0, x1)",
                         false});
  row.samples.push_back(
      {{values({4}, {0.5, 1, 1.5, 2})}, with_number(pow, -3.0), "torch.pow(x0, -3.0)"});
  row.samples.push_back({{normal({3, 4})}, with_number(pow, 0), "torch.pow(x0, 0)", false});
  for (double p : {1.0, 2.0, 3.0, 4.0, 5.0})
    row.samples.push_back({{normal({3, 4})},
                           with_number(pow, int64_t(p)),
                           "torch.pow(x0, " + std::to_string(int(p)) + ")"});
  for (const char* p : {"0.5", "-0.5", "2.5", "-1.0"})
    row.samples.push_back({{positive({3, 4})},
                           with_number(pow, std::stod(p)),
                           std::string("torch.pow(x0, ") + p + ")"});
  row.samples.push_back({{normal({3, 4})}, number_first(pow, 2), "torch.pow(2, x0)"});
  row.samples.push_back(
      {{values({3}, {0, 1, 2})}, number_first(pow, 0), "torch.pow(0, x0)", false});
  row = with_fails(
      row, {{[]() -> Tensors { return {pow(ones({2}, i32), -1)}; }, "negative power"},
            {[]() -> Tensors { return {pow(ones({2}, boolean), ones({2}, boolean))}; },
             "two bool tensors have no power"},
            {[]() -> Tensors { return {pow(true, ones({2}, boolean))}; }, "bool has no powers"}});
  row.ulps = 32;  // the exponent multiplies the relative error of the base
  return row;
}

Row extreme_row(const std::string& name, Binary op) {
  Row row = with_mask(binary_row(name, op, nullptr), op);
  row.samples.push_back({{values({4}, {1, 2, 3, 4}), values({4}, {1, 3, 3, 2})},
                         call(op),
                         "torch." + name + "(x0, x1)",
                         false});
  return row;
}

}  // namespace

Rows arithmetic_rows() {
  Row less = number_row("sub", "-", sub, sub_), from = number_first_row("sub", "-", sub);
  less.dtypes = from.dtypes = kNumbers;
  return {add_row(),
          sub_row(),
          mul_row(),
          div_row(),
          pow_row(),
          extreme_row("maximum", maximum),
          extreme_row("minimum", minimum),
          number_row("add", "+", add, add_),
          less,
          number_row("mul", "*", mul, mul_),
          number_row("div", "/", div, div_),
          from,
          number_first_row("div", "/", div)};
}

}  // namespace tg::test
