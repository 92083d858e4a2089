#include <cmath>

#include "ops/table.h"

namespace tg::test {
namespace {

constexpr double kInf = INFINITY;

std::string text(Reduction r) {
  return r == Reduction::none ? "'none'" : r == Reduction::mean ? "'mean'" : "'sum'";
}

// ---- classes --------------------------------------------------------------------------------

struct Classes {
  Reduction reduction = Reduction::mean;
  int64_t ignore_index = -100;
  double smoothing = 0;
};
using ClassOperator = Tensor (*)(const Tensor&, const Tensor&, const CrossEntropyOptions&);

// Inputs: logits, targets and, where there are three, weights.
Sample class_sample(const std::string& name, ClassOperator op, std::vector<In> in, Classes c) {
  std::string torch = "F." + name + "(x0, x1, reduction=" + text(c.reduction) +
                      ", ignore_index=" + std::to_string(c.ignore_index);
  if (in.size() > 2) torch += ", weight=x2";
  if (c.smoothing > 0) torch += ", label_smoothing=" + std::to_string(c.smoothing);
  return {std::move(in),
          [op, c](const Tensors& x) -> Tensors {
            CrossEntropyOptions o{.ignore_index = c.ignore_index,
                                  .label_smoothing = c.smoothing,
                                  .reduction = c.reduction};
            if (x.size() > 2) o.weight = x[2];
            return {op(x[0], x[1], o)};
          },
          torch + ")"};
}

Row class_row(const std::string& name, ClassOperator op, bool smoothing) {
  const auto sample = [name, op](std::vector<In> in, Classes c = {}) {
    return class_sample(name, op, std::move(in), c);
  };
  const double s = smoothing ? 0.25 : 0;
  const In weight = constant(positive({5}));
  Row row{.name = name};
  row.samples = {
      sample({normal({4, 5}), integers({4}, 0, 5)}),
      sample({normal({4, 5}), integers({4}, 0, 5)}, {.reduction = Reduction::none}),
      sample({normal({7, 19}), integers({7}, 0, 19)}, {.reduction = Reduction::sum}),
      sample({normal({5}), integers({}, 0, 5)}),
      sample({normal({2, 5, 3, 2}), integers({2, 3, 2}, 0, 5)}, {.smoothing = s}),
      sample({normal({6, 5}), integers({6}, 0, 5), weight}, {.ignore_index = 3, .smoothing = s}),
      sample({normal({6, 5}), integers({6}, 0, 5), weight},
             {.reduction = Reduction::sum, .ignore_index = 3, .smoothing = s}),
      sample({normal({2, 5, 3}), integers({2, 3}, 0, 5), weight},
             {.reduction = Reduction::none, .ignore_index = 2, .smoothing = s}),
      sample({normal({0, 5}), integers({0}, 0, 5)}, {.reduction = Reduction::sum})};
  row.large = [sample] { return sample({normal({300, 400}), integers({300}, 0, 400)}); };
  row.flops = [](const Tensors& in, const Tensors&) { return 5.0 * double(in[0].numel()); };
  row.ulps = 16;
  row.no_0d = {"there is no dimension of classes",
               [op]() -> Tensors { return {op(zeros({}), zeros({}, i64), {})}; },
               name + ": the input needs a dimension of classes, got []"};
  row.optional = {2};  // weights
  return row;
}

Row cross_entropy_row() {
  Row row = class_row("cross_entropy", cross_entropy, true);
  const auto sample = [](std::vector<In> in) {
    return class_sample("cross_entropy", cross_entropy, std::move(in), {});
  };
  // A confident wrong answer, and a class that is ruled out.
  row.samples.push_back(sample({values({2, 3}, {1000, 0, -1000, 0, 1, 2}), integers({2}, 1, 3)}));
  row.samples.push_back(
      sample({values({2, 3}, {-kInf, 0, 1, 2, -kInf, -kInf}), integers({2}, 2, 3)}));
  row.samples.back().smooth = false;
  row.fails = {{[]() -> Tensors {
                  return {cross_entropy(zeros({3, 5}), zeros({3, 5}))};
                },
                "i64"},
               {[]() -> Tensors {
                  return {cross_entropy(zeros({3, 5}), zeros({4}, i64))};
                },
                "[3]"},
               {[]() -> Tensors {
                  return {cross_entropy(zeros({3, 5}), full({3}, 5, {i64}))};
                },
                "target 5 of row 0 is outside of [0, 5)"},
               {[]() -> Tensors {
                  return {cross_entropy(zeros({3, 5}), zeros({3}, i64), {.label_smoothing = 1.5})};
                },
                "label_smoothing"},
               {[]() -> Tensors {
                  return {cross_entropy(zeros({3, 5}), zeros({3}, i64), {.weight = ones({4})})};
                },
                "weight must be [5]"}};
  return row;
}

Row nll_loss_row() {
  Row row = class_row("nll_loss", nll_loss, false);
  row.large = [] {
    return class_sample("nll_loss", nll_loss, {normal({99000, 3}), integers({99000}, 0, 3)}, {});
  };
  row.fails = {{[]() -> Tensors {
                  return {nll_loss(zeros({3, 5}), full({3}, -1, {i64}))};
                },
                "target -1"},
               {[]() -> Tensors {
                  return {nll_loss(zeros({3, 5}), zeros({3}, i64), {.label_smoothing = 0.1})};
                },
                "label smoothing"}};
  return row;
}

// ---- regression -----------------------------------------------------------------------------

using Regression = Tensor (*)(const Tensor&, const Tensor&, Reduction);

Row regression_row(const std::string& name, Regression op, const std::string& options = "") {
  const auto sample = [=](In x, In t, Reduction r = Reduction::mean) {
    return Sample{{x, t},
                  [op, r](const Tensors& v) -> Tensors { return {op(v[0], v[1], r)}; },
                  "F." + name + "(x0, x1, reduction=" + text(r) + options + ")"};
  };
  Row row{.name = name};
  row.samples = {sample(normal({3, 4}), normal({3, 4})),
                 sample(normal({3, 4}), normal({3, 4}), Reduction::none),
                 sample(normal({2, 3, 5}), constant(normal({2, 3, 5})), Reduction::sum),
                 sample(normal({}), normal({})),
                 sample(normal({0, 3}), normal({0, 3}), Reduction::sum)};
  row.large = [sample] { return sample(normal({300, 700}), normal({300, 700})); };
  row.ulps = 16;
  return row;
}

Tensor smooth_l1_half(const Tensor& x, const Tensor& t, Reduction r) {
  return smooth_l1_loss(x, t, 0.5, r);
}

Row bce_row() {
  const auto sample = [](std::vector<In> in, Reduction r = Reduction::mean, bool smooth = true) {
    std::string torch = "F.binary_cross_entropy_with_logits(x0, x1, reduction=" + text(r);
    if (in.size() > 2) torch += ", pos_weight=x2";
    if (in.size() > 3) torch += ", weight=x3";
    return Sample{std::move(in),
                  [r](const Tensors& x) -> Tensors {
                    BceOptions o{.reduction = r};
                    if (x.size() > 2) o.pos_weight = x[2];
                    if (x.size() > 3) o.weight = x[3];
                    return {binary_cross_entropy_with_logits(x[0], x[1], o)};
                  },
                  torch + ")", smooth};
  };
  Row row{.name = "binary_cross_entropy_with_logits"};
  row.samples = {
      sample({normal({3, 4}), unit({3, 4})}),
      sample({normal({3, 4}), unit({3, 4}), constant(positive({4}))}, Reduction::none),
      sample({normal({3, 4}), unit({3, 4}), constant(positive({3, 1})), constant(positive({4}))}),
      sample({normal({}), unit({})}, Reduction::sum),
      sample({normal({0, 2}), unit({0, 2})}, Reduction::sum),
      sample({values({4}, {0, -120, 1000, -1000}), constant(values({4}, {0, 1, 0, 1}))},
             Reduction::none)};
  row.fails = {{[]() -> Tensors {
                  return {binary_cross_entropy_with_logits(zeros({3, 1}), zeros({3}))};
                },
                "[3,1] and [3]"},
               {[]() -> Tensors {
                  return {binary_cross_entropy_with_logits(zeros({3, 2}), zeros({3, 2}),
                                                           {.pos_weight = ones({3})})};
                },
                "[3,2]"}};
  row.optional = {2, 3};  // weights
  row.large = [sample] { return sample({normal({300, 700}), unit({300, 700})}); };
  row.ulps = 16;
  return row;
}

}  // namespace

Rows loss_rows() {
  Row mse = regression_row("mse_loss", mse_loss), l1 = regression_row("l1_loss", l1_loss);
  Row smooth = regression_row("smooth_l1_loss", smooth_l1_half, ", beta=0.5");
  const std::string both = "[3,1] and [3]";
  mse.fails = {{[]() -> Tensors { return {mse_loss(zeros({3, 1}), zeros({3}))}; }, both}};
  l1.fails = {{[]() -> Tensors { return {l1_loss(zeros({3, 1}), zeros({3}))}; }, both}};
  smooth.fails = {
      {[]() -> Tensors {
         return {smooth_l1_loss(zeros({3, 1}), zeros({3}))};
       },
       both},
      {[]() -> Tensors { return {smooth_l1_loss(zeros({3}), zeros({3}), -1)}; }, "beta"}};
  return {cross_entropy_row(), nll_loss_row(), mse, l1, smooth, bce_row()};
}

}  // namespace tg::test
