#include <cmath>

#include "ops/table.h"

namespace tg::test {
namespace {

constexpr double kNan = NAN, kInf = INFINITY;

using Unary = Tensor (*)(const Tensor&);
using InPlace = const Tensor& (*)(const Tensor&);

struct Options {
  In (*domain)(Shape) = normal;
  std::vector<double> ends = {kInf, -kInf, kNan, 0, -0.0, 30, -30};
  InPlace inplace = nullptr;
  double ulps = 8;
  std::vector<DType> dtypes = kEveryDType;
};

Row unary_row(const std::string& name, const Call& call, const std::string& torch, Options o = {}) {
  Row row{.name = name};
  row.dtypes = o.dtypes;
  row.ulps = o.ulps;
  const auto sample = [=](Shape shape) { return Sample{{o.domain(shape)}, call, torch}; };
  row.samples = {sample({3, 4}), sample({2, 3, 5}), sample({}), sample({0, 3}), sample({37})};
  Shape ends = {int64_t(o.ends.size())};
  row.samples.push_back({{values(ends, o.ends)}, call, torch, false});
  row.large = [=] { return sample({330, 300}); };
  row.flops = [](const Tensors&, const Tensors& y) { return double(y[0].numel()); };
  if (InPlace inplace = o.inplace)
    row.inplace = [inplace](const Tensors& x) -> Tensors { return {inplace(x[0])}; };
  return row;
}
Row unary_row(const std::string& name, Unary op, Options o = {}) {
  return unary_row(
      name, [op](const Tensors& x) -> Tensors { return {op(x[0])}; }, "torch." + name + "(x0)", o);
}

// Of numbers, not of truth values.
Row no_bool(Row row, Unary op) {
  row.dtypes = kNumbers;
  return with_fails(row, {{[op]() -> Tensors { return {op(ones({2}, boolean))}; },
                           row.name + ": is not defined for bool"}});
}
// In place, a result that is a float has no place in integers.
Row stays_float(Row row, InPlace op) {
  return with_fails(row, {{[op]() -> Tensors { return {op(ones({2}, i32))}; },
                           row.name + "_: the result is a float and cannot be written into i32"}});
}

Row clamp_row() {
  Options o;
  o.ends = {kInf, -kInf, kNan, -0.5, 1, 0};
  Row row = unary_row(
      "clamp", [](const Tensors& x) -> Tensors { return {clamp(x[0], -0.5, 1)}; },
      "torch.clamp(x0, -0.5, 1)", o);
  row.inplace = [](const Tensors& x) -> Tensors { return {clamp_(x[0], -0.5, 1)}; };
  row.fails = {{[]() -> Tensors { return {clamp(ones({2}), NAN, 1)}; }, "a bound is NaN"}};
  return row;
}

// One bound, and bounds that are crossed.
Row clamp_bounds_row() {
  Row row{.name = "clamp.bounds"};
  row.dtypes = kEveryDType;
  row.samples = {{{normal({3, 4})},
                  [](const Tensors& x) -> Tensors { return {clamp(x[0], 1)}; },
                  "torch.clamp(x0, min=1)"},
                 {{normal({3, 4})},
                  [](const Tensors& x) -> Tensors { return {clamp(x[0], -INFINITY, 1)}; },
                  "torch.clamp(x0, max=1)"},
                 {{normal({3, 4})},
                  [](const Tensors& x) -> Tensors { return {clamp(x[0], 2, 1)}; },
                  "torch.clamp(x0, 2, 1)"},
                 {{normal({0})},
                  [](const Tensors& x) -> Tensors { return {clamp(x[0], 0, 1)}; },
                  "torch.clamp(x0, 0, 1)"},
                 {{normal({})},
                  [](const Tensors& x) -> Tensors { return {clamp(x[0], 1)}; },
                  "torch.clamp(x0, min=1)"}};
  row.large = [] {
    return Sample{
        {normal({330, 300})}, [](const Tensors& x) -> Tensors { return {clamp(x[0], 1)}; }, ""};
  };
  return row;
}

Row flat(Row row) {
  row.opt_outs = {{Part::second_derivative, "the derivative is 0 everywhere and not recorded"}};
  return row;
}

std::vector<Row> activation_rows() {
  const Call leaky = [](const Tensors& x) -> Tensors { return {leaky_relu(x[0], 0.2)}; };
  const Call elu_half = [](const Tensors& x) -> Tensors { return {elu(x[0], 0.5)}; };
  const Call gelu_erf = [](const Tensors& x) -> Tensors { return {gelu(x[0])}; };
  const Call gelu_tanh = [](const Tensors& x) -> Tensors { return {gelu(x[0], Gelu::tanh)}; };
  Options no_kink;
  no_kink.ends = {kNan, 30, -30, 0};  // PyTorch's derivative at infinity is NaN

  Row gelu_row = unary_row("gelu", gelu_erf, "F.gelu(x0 * 1.0)", no_kink);
  for (const Sample& s : std::vector<Sample>(gelu_row.samples)) {
    Sample tanh_form = s;
    tanh_form.call = gelu_tanh;
    tanh_form.torch = "F.gelu(x0 * 1.0, approximate='tanh')";
    gelu_row.samples.push_back(tanh_form);
  }
  return {no_bool(unary_row("relu", [](const Tensors& x) -> Tensors { return {relu(x[0])}; },
                            "torch.relu(x0)", {.inplace = relu_}),
                  relu),
          unary_row("leaky_relu", leaky, "F.leaky_relu(x0 * 1.0, 0.2)"),
          unary_row("elu", elu_half, "F.elu(x0 * 1.0, 0.5)"),
          gelu_row,
          unary_row(
              "silu", [](const Tensors& x) -> Tensors { return {silu(x[0])}; }, "F.silu(x0 * 1.0)",
              no_kink),
          unary_row(
              "softplus", [](const Tensors& x) -> Tensors { return {softplus(x[0])}; },
              "F.softplus(x0 * 1.0, threshold=80)", no_kink)};
}

}  // namespace

Rows unary_rows() {
  Options away_from_0{.ends = {kInf, -kInf, kNan, 30, -30}};
  Options above_0{.domain = positive, .ends = {kInf, kNan, 1, 1000}};
  Options angles{.ends = {0, 30, -30, 100}};
  Rows rows = {
      no_bool(unary_row("neg", neg, {.inplace = neg_}), neg),
      no_bool(unary_row(
                  "abs", [](const Tensors& x) -> Tensors { return {abs(x[0])}; }, "torch.abs(x0)",
                  away_from_0),
              static_cast<Unary>(abs)),
      flat(unary_row("sign", sign, away_from_0)),
      unary_row("square", square),
      unary_row("reciprocal", reciprocal),
      stays_float(unary_row("exp", [](const Tensors& x) -> Tensors { return {exp(x[0])}; },
                            "torch.exp(x0)", {.inplace = exp_}),
                  exp_),
      unary_row(
          "expm1", [](const Tensors& x) -> Tensors { return {expm1(x[0])}; }, "torch.expm1(x0)"),
      unary_row(
          "log", [](const Tensors& x) -> Tensors { return {log(x[0])}; }, "torch.log(x0)", above_0),
      unary_row(
          "log1p", [](const Tensors& x) -> Tensors { return {log1p(x[0])}; }, "torch.log1p(x0)",
          above_0),
      stays_float(unary_row("sqrt", [](const Tensors& x) -> Tensors { return {sqrt(x[0])}; },
                            "torch.sqrt(x0)",
                            {.domain = positive, .ends = {kInf, kNan, 4, -1}, .inplace = sqrt_}),
                  sqrt_),
      unary_row("rsqrt", rsqrt, above_0),
      unary_row(
          "sin", [](const Tensors& x) -> Tensors { return {sin(x[0])}; }, "torch.sin(x0)", angles),
      unary_row(
          "cos", [](const Tensors& x) -> Tensors { return {cos(x[0])}; }, "torch.cos(x0)", angles),
      stays_float(unary_row("tanh", [](const Tensors& x) -> Tensors { return {tanh(x[0])}; },
                            "torch.tanh(x0)", {.inplace = tanh_}),
                  tanh_),
      unary_row(
          "erf", [](const Tensors& x) -> Tensors { return {erf(x[0])}; }, "torch.erf(x0)"),
      no_bool(flat(unary_row(
                  "floor", [](const Tensors& x) -> Tensors { return {floor(x[0])}; },
                  "torch.floor(x0)")),
              static_cast<Unary>(floor)),
      no_bool(
          flat(unary_row(
              "ceil", [](const Tensors& x) -> Tensors { return {ceil(x[0])}; }, "torch.ceil(x0)")),
          static_cast<Unary>(ceil)),
      no_bool(flat(unary_row("round", [](const Tensors& x) -> Tensors { return {round(x[0])}; },
                             "torch.round(x0)", {.ends = {0.5, 1.5, 2.5, -0.5, -1.5, kInf, kNan}})),
              static_cast<Unary>(round)),
      stays_float(unary_row("sigmoid", sigmoid, {.inplace = sigmoid_}), sigmoid_),
      clamp_row(),
      clamp_bounds_row()};
  for (Row& row : activation_rows()) rows.push_back(row);
  return rows;
}

}  // namespace tg::test
