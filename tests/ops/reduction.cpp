#include <cmath>

#include "ops/table.h"

namespace tg::test {
namespace {

constexpr double kNan = NAN, kInf = INFINITY;
using Dims = std::vector<int64_t>;
using Total = Tensor (*)(const Tensor&);

// Over everything, with calls that take no dimension.
Row total_row(const std::string& name, Total op) {
  const Call call = [op](const Tensors& x) -> Tensors { return {op(x[0])}; };
  const std::string torch = "torch." + name + "(x0)";
  Row row{.name = name};
  row.dtypes = kEveryDType;
  row.samples = {{{normal({3, 4})}, call, torch},
                 {{normal({2, 3, 5})}, call, torch},
                 {{normal({})}, call, torch},
                 {{normal({37})}, call, torch}};
  row.large = [=] { return Sample{{normal({330, 300})}, call, torch}; };
  return row;
}
void push(Row& row, In in, Call call, const std::string& torch, bool smooth = true) {
  row.samples.push_back({{in}, std::move(call), torch, smooth});
}
// The same with dimensions: the inner, the outer, several, negative ones, kept ones.
template <class Op>
void add_dims(Row& row, Op op, const std::string& torch) {
  const std::pair<Shape, std::pair<Dims, bool>> cases[] = {
      {{3, 4}, {{1}, false}},    {{3, 4}, {{0}, true}},          {{2, 3, 4}, {{0, 2}, false}},
      {{2, 3, 4}, {{-2}, true}}, {{2, 3, 4, 5}, {{1, 3}, true}}, {{4, 1, 3}, {{1}, false}},
      {{0, 3}, {{1}, false}},    {{70, 9}, {{0}, false}},        {{}, {{0}, false}}};
  for (const auto& [shape, how] : cases) {
    Dims dims = how.first;
    bool keepdim = how.second;
    std::string list;
    for (int64_t d : dims) list += (list.empty() ? "" : ", ") + std::to_string(d);
    push(
        row, normal(shape),
        [op, dims, keepdim](const Tensors& x) -> Tensors { return {op(x[0], dims, keepdim)}; },
        torch + "(x0, dim=(" + list + ",), keepdim=" + (keepdim ? "True" : "False") + ")");
  }
}

Row sum_row() {
  Row row = total_row("sum", sum);
  add_dims(
      row, [](const Tensor& x, const Dims& d, bool k) { return sum(x, d, k); }, "torch.sum");
  push(
      row, normal({0, 3}), [](const Tensors& x) -> Tensors { return {sum(x[0], 0)}; },
      "torch.sum(x0, 0)");
  push(
      row, values({4}, {kInf, 1, -kInf, 2}),
      [](const Tensors& x) -> Tensors { return {sum(x[0])}; }, "torch.sum(x0)", false);
  row.fails = {{[]() -> Tensors {
                  return {sum(zeros({2, 3}), 2)};
                },
                "sum: dim 2 is out of range"},
               {[]() -> Tensors {
                  return {sum(zeros({2, 3}), Dims{1, -1})};
                },
                "named twice"}};
  row.flops = [](const Tensors& x, const Tensors&) { return double(x[0].numel()); };
  return row;
}

Row sum_to_row() {
  const auto sample = [](Shape from, Shape to, const std::string& torch) {
    return Sample{
        {normal(from)}, [to](const Tensors& x) -> Tensors { return {sum_to(x[0], to)}; }, torch};
  };
  Row row{.name = "sum_to"};
  row.dtypes = kEveryDType;
  row.samples = {sample({2, 3, 4}, {3, 1}, "x0.sum_to_size(3, 1)"), sample({2, 3}, {2, 3}, "x0"),
                 sample({3, 4}, {4}, "x0.sum_to_size(4)"),          sample({3, 4}, {}, "x0.sum()"),
                 sample({0, 4}, {1, 4}, "x0.sum_to_size(1, 4)"),    sample({}, {}, "x0")};
  row.large = [=] { return sample({330, 300}, {300}, "x0.sum_to_size(300)"); };
  row.fails = {{[]() -> Tensors { return {sum_to(zeros({2, 3}), {4})}; }, "broadcast"}};
  return row;
}

Row mean_row() {
  Row row = total_row("mean", mean);
  row.dtypes = kFloats;
  add_dims(
      row, [](const Tensor& x, const Dims& d, bool k) { return mean(x, d, k); }, "torch.mean");
  push(
      row, normal({0, 3}), [](const Tensors& x) -> Tensors { return {mean(x[0], 0)}; },
      "torch.mean(x0, 0)", false);
  row.fails = {{[]() -> Tensors { return {mean(zeros({2}, i64))}; }, "mean: needs a float tensor"}};
  return row;
}

Row prod_row() {
  Row row = total_row("prod", prod);
  row.samples.pop_back();
  row.ulps = 64;
  const Call call = [](const Tensors& x) -> Tensors { return {prod(x[0])}; };
  push(row, values({5}, {1, 2, 0, 3, 4}), call, "torch.prod(x0)");
  push(row, values({5}, {1, 0, 0, 3, 4}), call, "torch.prod(x0)");
  push(row, values({2, 3}, {0, 0, 0, 3, 4, 1}), call, "torch.prod(x0)");
  push(row, normal({0}), call, "torch.prod(x0)");
  row.large = [call] {  // near 1, so that the product stays finite and above 0
    std::vector<double> near_one;
    for (int i = 0; i < 330 * 300; ++i) near_one.push_back(1 + (i % 3 - 1) / 128.0);
    return Sample{{values({330, 300}, near_one)}, call, ""};
  };
  return row;
}

Row extreme_row(const std::string& name, bool largest) {
  Row row = total_row(name, largest ? static_cast<Total>(max) : static_cast<Total>(min));
  const Call all = row.samples[0].call;
  push(row, values({5}, {2, 5, 5, 1, 1}), all, "torch." + name + "(x0)", false);
  for (int64_t dim : {0, 1, -1})
    for (bool keepdim : {false, true})
      push(
          row, normal({4, 7}),
          [=](const Tensors& x) -> Tensors {
            auto [value, place] = largest ? max(x[0], dim, keepdim) : min(x[0], dim, keepdim);
            return {value, place};
          },
          "torch." + name + "(x0, " + std::to_string(dim) +
              (keepdim ? ", keepdim=True)" : ", keepdim=False)"));
  push(
      row, values({2, 3}, {kNan, 1, kNan, 2, kNan, kInf}),
      [=](const Tensors& x) -> Tensors {
        auto [value, place] = largest ? max(x[0], 1) : min(x[0], 1);
        return {value.detach(), place};
      },
      "[t.detach() for t in torch." + name + "(x0, 1)]", false);
  const auto along = [largest](int64_t dim) -> Call {
    return [=](const Tensors& x) -> Tensors {
      auto [value, place] = largest ? max(x[0], dim) : min(x[0], dim);
      return {value, place};
    };
  };
  push(row, normal({0, 3}), along(1), "torch." + name + "(x0, 1)");
  push(row, normal({}), along(0), "torch." + name + "(x0, 0)");
  row.fails = {{[all]() -> Tensors { return all({zeros({0})}); }, name + ": an empty range"},
               {[along]() -> Tensors {
                  return along(0)({zeros({0, 3})});
                },
                name + ": an empty range"}};
  return row;
}

Row amax_row(const std::string& name, bool largest) {
  Row row{.name = name};
  row.dtypes = kEveryDType;
  add_dims(
      row,
      [=](const Tensor& x, const Dims& d, bool k) {
        return largest ? amax(x, d, k) : amin(x, d, k);
      },
      "torch." + name);
  row.large = [=] {
    return Sample{
        {normal({330, 300})},
        [=](const Tensors& x) -> Tensors { return {largest ? amax(x[0], {0}) : amin(x[0], {0})}; },
        ""};
  };
  row.fails = {{[largest]() -> Tensors {
                  const Tensor none = zeros({0, 2});
                  return {largest ? amax(none, {0}) : amin(none, {0})};
                },
                name + ": an empty range"}};
  return row;
}

Row place_row(const std::string& name, bool largest) {
  Row row = total_row(name, largest ? static_cast<Total>(argmax) : static_cast<Total>(argmin));
  for (int64_t dim : {0, -1})
    for (bool keepdim : {false, true})
      push(
          row, normal({3, 4, 5}),
          [=](const Tensors& x) -> Tensors {
            return {largest ? argmax(x[0], dim, keepdim) : argmin(x[0], dim, keepdim)};
          },
          "torch." + name + "(x0, " + std::to_string(dim) +
              (keepdim ? ", keepdim=True)" : ", keepdim=False)"));
  const auto along_1 = [largest](const Tensors& x) -> Tensors {
    return {largest ? argmax(x[0], 1) : argmin(x[0], 1)};
  };
  push(row, normal({0, 3}), along_1, "torch." + name + "(x0, 1)");
  for (Sample& sample : row.samples) {  // PyTorch takes no bool here
    const size_t at = sample.torch.find("x0");
    sample.torch.replace(at, 2, "(x0 + 0)");
  }
  const Call total = row.samples[0].call;
  row.fails = {{[total]() -> Tensors { return total({zeros({0})}); }, name + ": an empty range"},
               {[along_1]() -> Tensors {
                  return along_1({zeros({3, 0})});
                },
                name + ": an empty range"}};
  row.opt_outs = {{Part::gradient, "positions have no derivative"}};
  return row;
}

Row spread_row(const std::string& name, bool root) {
  const auto apply = [root](const Tensor& x, const Dims& d, int64_t c, bool k) {
    return root ? std(x, d, c, k) : var(x, d, c, k);
  };
  Row row{.name = name};
  row.dtypes = kFloats;
  row.ulps = 16;
  const std::string torch = "torch." + name;
  const std::pair<Shape, Dims> cases[] = {
      {{3, 4}, {1}}, {{6, 4}, {0}}, {{2, 3, 4}, {0, -1}}, {{37}, {0}}};
  for (const auto& [shape, dims] : cases)
    for (int64_t c : {0, 1}) {
      Dims over = dims;
      std::string list;
      for (int64_t d : over) list += std::to_string(d) + ",";
      push(
          row, normal(shape),
          [=](const Tensors& x) -> Tensors { return {apply(x[0], over, c, c == 0)}; },
          torch + "(x0, dim=(" + list + "), correction=" + std::to_string(c) +
              (c == 0 ? ", keepdim=True)" : ")"));
    }
  push(
      row, normal({5, 7}), [=](const Tensors& x) -> Tensors { return {apply(x[0], {}, 1, false)}; },
      torch + "(x0)");
  // Of no elements, and of one less its mean, there is no variance: NaN.
  const Call plain = [=](const Tensors& x) -> Tensors { return {apply(x[0], {}, 1, false)}; };
  push(row, normal({0}), plain, torch + "(x0)", false);
  push(row, normal({}), plain, torch + "(x0)", false);
  push(
      row, normal({0, 3}),
      [=](const Tensors& x) -> Tensors { return {apply(x[0], {1}, 1, false)}; },
      torch + "(x0, dim=1)");
  row.fails = {
      {[plain]() -> Tensors { return plain({zeros({2}, i64)}); }, name + ": needs a float tensor"}};
  row.large = [=] {
    return Sample{{normal({330, 300})},
                  [=](const Tensors& x) -> Tensors { return {apply(x[0], {0}, 1, false)}; },
                  ""};
  };
  return row;
}

Row logsumexp_row() {
  const auto over = [](int64_t dim, bool keepdim) -> Call {
    return [=](const Tensors& x) -> Tensors { return {logsumexp(x[0], dim, keepdim)}; };
  };
  Row row{.name = "logsumexp"};
  row.dtypes = kFloats;
  push(row, normal({3, 4}), over(1, false), "torch.logsumexp(x0, 1)");
  push(row, normal({3, 4}), over(0, true), "torch.logsumexp(x0, 0, keepdim=True)");
  push(row, normal({2, 3, 5}), over(-2, false), "torch.logsumexp(x0, -2)");
  push(row, normal({}), over(0, false), "torch.logsumexp(x0, 0)");
  push(row, normal({0, 3}), over(0, false), "torch.logsumexp(x0, 0)");
  push(row, values({3, 2}, {100, 100, -kInf, 1, 30, -30}), over(1, false), "torch.logsumexp(x0, 1)",
       false);
  row.large = [=] { return Sample{{normal({330, 300})}, over(1, false), ""}; };
  row.fails = {{[over]() -> Tensors {
                  return over(2, false)({zeros({2, 3})});
                },
                "logsumexp: dim 2 is out of range"}};
  return row;
}

Row cumsum_row() {
  const auto along = [](int64_t dim) -> Call {
    return [=](const Tensors& x) -> Tensors { return {cumsum(x[0], dim)}; };
  };
  Row row{.name = "cumsum"};
  row.dtypes = kEveryDType;
  for (int64_t dim : {0, 1, -1})
    push(row, normal({3, 4, 5}), along(dim), "torch.cumsum(x0, " + std::to_string(dim) + ")");
  push(row, normal({}), along(0), "torch.cumsum(x0, 0)");
  push(row, normal({2, 0}), along(1), "torch.cumsum(x0, 1)");
  row.large = [=] { return Sample{{normal({330, 300})}, along(1), ""}; };
  row.fails = {{[along]() -> Tensors {
                  return along(-3)({zeros({2, 3})});
                },
                "cumsum: dim -3 is out of range"}};
  return row;
}

Row norm_row() {
  Row row{.name = "norm"};
  row.dtypes = kFloats;
  row.ulps = 16;
  for (const char* p : {"2", "1", "0", "3", "1.5", "inf", "-inf"}) {
    double order = std::stod(p);
    std::string torch = std::string("torch.linalg.vector_norm(x0, float('") + p + "')";
    push(
        row, normal({3, 4}), [=](const Tensors& x) -> Tensors { return {norm(x[0], order)}; },
        torch + ")", order != 0);
    push(
        row, normal({3, 4}),
        [=](const Tensors& x) -> Tensors { return {norm(x[0], order, {0}, true)}; },
        torch + ", dim=0, keepdim=True)", order != 0);  // flat: no second derivative
  }
  push(
      row, normal({}), [](const Tensors& x) -> Tensors { return {norm(x[0])}; },
      "torch.linalg.vector_norm(x0)");
  push(
      row, normal({0}), [](const Tensors& x) -> Tensors { return {norm(x[0])}; },
      "torch.linalg.vector_norm(x0)");
  push(
      row, normal({0, 3}), [](const Tensors& x) -> Tensors { return {norm(x[0], kInf, {1})}; },
      "torch.linalg.vector_norm(x0, float('inf'), dim=1)");
  row.fails = {{[]() -> Tensors { return {norm(zeros({0}), kInf)}; },
                "norm: an empty range has no norm with p = inf"},
               {[]() -> Tensors { return {norm(zeros({0}), -kInf)}; }, "an empty range"},
               {[]() -> Tensors { return {norm(zeros({3}), kNan)}; }, "p is NaN"}};
  row.large = [] {
    return Sample{
        {normal({330, 300})}, [](const Tensors& x) -> Tensors { return {norm(x[0], 2, {1})}; }, ""};
  };
  return row;
}

Row truth_row(const std::string& name, Tensor (*op)(const Tensor&)) {
  const Call call = [op](const Tensors& x) -> Tensors { return {op(x[0])}; };
  const std::string torch = "torch." + name + "(x0 != 0)";  // which of u8 would give u8 there
  Row row{.name = name};
  row.dtypes = kEveryDType;
  row.samples = {{{normal({3, 4})}, call, torch},
                 {{values({4}, {0, 0, -0.0, 0})}, call, torch},
                 {{values({3}, {0, kNan, 0})}, call, torch, false},
                 {{normal({0})}, call, torch},
                 {{normal({})}, call, torch},
                 {{booleans({5})}, call, torch}};
  row.opt_outs = {{Part::gradient, "truth values have no derivative"}};
  row.large = [call] { return Sample{{booleans({330, 300})}, call, ""}; };
  return row;
}

}  // namespace

Rows reduction_rows() {
  return {sum_row(),
          sum_to_row(),
          mean_row(),
          prod_row(),
          extreme_row("max", true),
          extreme_row("min", false),
          amax_row("amax", true),
          amax_row("amin", false),
          place_row("argmax", true),
          place_row("argmin", false),
          spread_row("var", false),
          spread_row("std", true),
          logsumexp_row(),
          cumsum_row(),
          norm_row(),
          truth_row("any", any),
          truth_row("all", all)};
}

}  // namespace tg::test
