#include "ops/table.h"

namespace tg::test {
namespace {

Call call(Tensor (*op)(const Tensor&, const Tensor&)) {
  return [op](const Tensors& x) -> Tensors { return {op(x[0], x[1])}; };
}

double product_flops(const Tensors& in, const Tensors& out) {
  return 2.0 * double(out[0].numel()) * double(in[0].size(-1));
}

Row matmul_row() {
  const auto sample = [](Shape a, Shape b) {
    return Sample{{normal(a), normal(b)}, call(matmul), "torch.matmul(x0, x1)"};
  };
  Row row{.name = "matmul"};
  row.dtypes = kNumbers;
  row.samples = {
      sample({3, 4}, {4, 5}),    sample({2, 1, 3, 4}, {3, 4, 2}),  // both batches stretch
      sample({2, 3, 4}, {4, 5}),                                   // one matrix for a whole batch
      sample({4, 5}, {2, 5, 3}), sample({5}, {5}),
      sample({4}, {2, 4, 3}),    sample({2, 3, 4}, {4}),
      sample({3, 0}, {0, 2}),  // an empty sum is 0
      sample({0, 3, 4}, {4, 2}), sample({2, 0, 4}, {2, 4, 3}),
      sample({9, 35}, {35, 18})};
  row.samples.push_back({{values({2, 2}, {32768, 1, 0, -512}), values({2, 2}, {1, 0, -1024, 2})},
                         call(matmul),
                         "torch.matmul(x0, x1)"});
  row.fails = {{[]() -> Tensors {
                  return {matmul(zeros({2, 3}), zeros({4, 5}))};
                },
                "matmul: inner sizes differ: [2,3] [4,5]"},
               {[]() -> Tensors {
                  return {matmul(zeros({2, 3, 4}), zeros({3, 4, 5}))};
                },
                "[2] "},
               {[]() -> Tensors {
                  return {matmul(zeros({2, 2}), zeros({2, 2}, f64))};
                },
                "differ in dtype"},
               {[]() -> Tensors {
                  return {matmul(zeros({2, 2}, boolean), zeros({2, 2}, boolean))};
                },
                "bool cannot be multiplied"},
               {[]() -> Tensors {
                  return {matmul(Tensor(), zeros({2, 2}))};
                },
                "undefined"}};
  row.no_0d = {"a product sums over a dimension",
               []() -> Tensors { return {matmul(zeros({}), zeros({4}))}; },
               "matmul: needs at least one dimension: [] [4]"};
  row.large = [sample] { return sample({310, 300}, {300, 320}); };
  row.flops = product_flops;
  return row;
}

Row linear_row() {
  const Call with_bias = [](const Tensors& x) -> Tensors { return {linear(x[0], x[1], x[2])}; };
  const auto sample = [=](Shape x, Shape w) {
    return Sample{{normal(x), normal(w), normal({w[0]})}, with_bias, "F.linear(x0, x1, x2)"};
  };
  Row row{.name = "linear"};
  row.dtypes = kNumbers;
  row.samples = {sample({4, 5}, {3, 5}),
                 sample({2, 3, 4}, {5, 4}),
                 sample({6}, {2, 6}),
                 sample({0, 4}, {3, 4}),
                 sample({7, 33}, {19, 33}),
                 {{normal({4, 5}), normal({3, 5})},
                  [](const Tensors& x) -> Tensors { return {linear(x[0], x[1])}; },
                  "F.linear(x0, x1)"}};
  row.fails = {{[]() -> Tensors {
                  return {linear(zeros({2, 3}), zeros({5, 4}))};
                },
                "linear: input of shape [2,3] does not fit weight [out,in] of [5,4]"},
               {[]() -> Tensors {
                  return {linear(zeros({2, 3}), zeros({5, 3}), zeros({4}))};
                },
                "bias of shape [4]"},
               {[]() -> Tensors {
                  return {linear(zeros({2, 3}), zeros({3}))};
                },
                "weight is [out,in]"},
               {[]() -> Tensors {
                  return {linear(zeros({2, 3}, f64), zeros({5, 3}))};
                },
                "differ in dtype"}};
  row.no_0d = {"a product sums over a dimension",
               []() -> Tensors {
                 return {linear(zeros({}), zeros({5, 4}))};
               },
               "linear: input of shape [] does not fit weight"};
  row.optional = {2};
  row.large = [sample] { return sample({500, 200}, {300, 200}); };
  row.flops = product_flops;
  return row;
}

Row addmm_row() {
  const Call plain = [](const Tensors& x) -> Tensors { return {addmm(x[0], x[1], x[2])}; };
  const auto sample = [=](Shape input, Shape a, Shape b) {
    return Sample{{normal(input), normal(a), normal(b)}, plain, "torch.addmm(x0, x1, x2)"};
  };
  Row row{.name = "addmm"};
  row.dtypes = kNumbers;
  row.samples = {sample({3, 5}, {3, 4}, {4, 5}),  sample({5}, {3, 4}, {4, 5}),
                 sample({3, 1}, {3, 4}, {4, 5}),  sample({3, 2}, {3, 0}, {0, 2}),
                 sample({18}, {9, 20}, {20, 18}), sample({}, {2, 3}, {3, 2}),
                 sample({0}, {2, 3}, {3, 0})};
  row.samples.push_back(
      {{normal({3, 2}), normal({3, 4}), normal({4, 2})},
       [](const Tensors& x) -> Tensors { return {addmm(x[0], x[1], x[2], 2, 3)}; },
       "torch.addmm(x0, x1, x2, beta=2, alpha=3)"});
  row.fails = {{[]() -> Tensors {
                  return {addmm(zeros({4}), zeros({2, 3}), zeros({3, 5}))};
                },
                "addmm: "},
               {[]() -> Tensors {
                  return {addmm(zeros({5}), zeros({2, 3}), zeros({4, 5}))};
                },
                "inner sizes differ"},
               {[]() -> Tensors {
                  return {addmm(zeros({5}), zeros({3}), zeros({3, 5}))};
                },
                "takes matrices"},
               {[]() -> Tensors {
                  return {addmm(zeros({5}, i64), zeros({2, 3}, i64), zeros({3, 5}, i64), 1, 0.5)};
                },
                "addmm: alpha must be a whole number for operands of type i64 but is 0.5"}};
  row.large = [sample] { return sample({300}, {310, 200}, {200, 300}); };
  row.flops = [](const Tensors& in, const Tensors& out) {
    return 2.0 * double(out[0].numel()) * double(in[1].size(-1));
  };
  return row;
}

// mm, bmm, mv, dot, outer: matmul for one rank.
Row ranked_row(const std::string& name, Tensor (*op)(const Tensor&, const Tensor&),
               const std::vector<std::pair<Shape, Shape>>& shapes,
               const std::pair<Shape, Shape>& large, std::vector<Fails> fails) {
  Row row{.name = name};
  row.dtypes = kNumbers;
  for (const auto& shape : shapes) {
    row.samples.push_back(
        {{normal(shape.first), normal(shape.second)}, call(op), "torch." + name + "(x0, x1)"});
  }
  row.fails = std::move(fails);
  row.no_0d = {
      "made for one rank",
      [op, second = shapes[0].second]() -> Tensors { return {op(zeros({}), zeros(second))}; },
      name + ": "};
  row.large = [op, large] {
    return Sample{{normal(large.first), normal(large.second)}, call(op), ""};
  };
  return row;
}

Row einsum_row() {
  const auto sample = [](const std::string& equation, const std::vector<Shape>& shapes) {
    Sample s;
    s.torch = "torch.einsum('" + equation + "'";
    for (size_t i = 0; i < shapes.size(); ++i) {
      s.in.push_back(normal(shapes[i]));
      s.torch += ", x" + std::to_string(i);
    }
    s.torch += ").to(x0.dtype)";  // where nothing is multiplied, PyTorch sums integers to i64
    s.call = [equation](const Tensors& x) -> Tensors { return {einsum(equation, x)}; };
    return s;
  };
  Row row{.name = "einsum"};
  row.dtypes = kNumbers;
  row.samples = {sample("bij,bjk->bik", {{2, 3, 4}, {2, 4, 5}}),
                 sample("...qd,...kd->...qk", {{2, 3, 4, 2}, {2, 1, 5, 2}}),  // stretched batch
                 sample("ii", {{3, 3}}),                                      // trace
                 sample("ii->i", {{3, 3}}),
                 sample("ij->ji", {{2, 3}}),
                 sample("ba", {{2, 3}}),  // alphabetical: transposes
                 sample("i,j->ij", {{3}, {4}}),
                 sample("i,i->", {{4}, {4}}),
                 sample("ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 2}}),
                 sample("bn,anm,bm->ba", {{2, 3}, {4, 3, 2}, {2, 2}}),
                 sample("iij,jk->ik", {{3, 3, 2}, {2, 4}}),
                 sample("ij->", {{2, 3}}),
                 sample("i...->...", {{2, 3, 4}}),
                 sample("...ij->...", {{2, 3, 2}}),
                 sample("b...,b...->b...", {{2, 3}, {2, 3}}),
                 sample("ij,jk->ik", {{2, 0}, {0, 3}}),
                 sample("ij,kj->ik", {{2, 1}, {3, 4}}),  // a size of 1 stretches
                 sample("->", {{}}),
                 sample("ij->j", {{0, 3}}),
                 sample("Ab,bA", {{2, 3}, {3, 2}})};
  row.fails = {{[]() -> Tensors {
                  return {einsum("ij,jk", {zeros({2, 3})})};
                },
                "names 2 operands, got 1"},
               {[]() -> Tensors {
                  return {einsum("ijk->i", {zeros({2, 3})})};
                },
                "\"ijk\" in \"ijk->i\" does not fit an operand of shape [2,3]"},
               {[]() -> Tensors {
                  return {einsum("ij,jk->ik", {zeros({2, 3}), zeros({4, 2})})};
                },
                "sizes 3 and 4"},
               {[]() -> Tensors {
                  return {einsum("ij->ik", {zeros({2, 3})})};
                },
                "is in no operand"},
               {[]() -> Tensors {
                  return {einsum("ij->ii", {zeros({2, 3})})};
                },
                "appears twice in the result"},
               {[]() -> Tensors {
                  return {einsum("i%->i", {zeros({2, 3})})};
                },
                "make an equation"},
               {[]() -> Tensors {
                  return {einsum("ii->i", {zeros({2, 3})})};
                },
                "appears twice in one operand"},
               {[]() -> Tensors { return {einsum("", {})}; }, "at least one operand"},
               {[]() -> Tensors { return {einsum("i->", {zeros({3}, boolean)})}; },
                "einsum: bool cannot be summed: bool[3] - cast it with .to(i64)"}};
  row.large = [sample] { return sample("bij,bjk->bik", {{6, 110, 90}, {6, 90, 100}}); };
  return row;
}

}  // namespace

Rows matmul_rows() {
  Rows rows = {matmul_row(), linear_row(), addmm_row(), einsum_row()};
  rows.push_back(
      ranked_row("mm", mm, {{{3, 4}, {4, 5}}, {{3, 0}, {0, 2}}, {{0, 4}, {4, 5}}, {{1, 8}, {8, 1}}},
                 {{310, 300}, {300, 320}},
                 {{[]() -> Tensors {
                     return {mm(zeros({2, 2, 2}), zeros({2, 2}))};
                   },
                   "mm: takes ranks 2 and 2"}}));
  rows.push_back(ranked_row("bmm", bmm,
                            {{{2, 3, 4}, {2, 4, 5}},
                             {{3, 2, 0}, {3, 0, 3}},
                             {{0, 2, 3}, {0, 3, 2}},
                             {{2, 1, 9}, {2, 9, 1}}},
                            {{6, 110, 90}, {6, 90, 100}},
                            {{[]() -> Tensors {
                                return {bmm(zeros({1, 2, 3}), zeros({2, 3, 2}))};
                              },
                              "batch sizes differ"}}));
  rows.push_back(ranked_row(
      "mv", mv, {{{3, 4}, {4}}, {{1, 20}, {20}}, {{3, 0}, {0}}, {{0, 4}, {4}}}, {{600, 700}, {700}},
      {{[]() -> Tensors { return {mv(zeros({4}), zeros({4}))}; }, "mv: takes ranks"}}));
  rows.push_back(ranked_row(
      "dot", dot, {{{4}, {4}}, {{1}, {1}}, {{0}, {0}}, {{37}, {37}}}, {{400000}, {400000}},
      {{[]() -> Tensors { return {dot(zeros({4}), zeros({3}))}; }, "inner sizes differ"}}));
  rows.back().opt_outs = {
      {Part::forward_split, "one sum is one chain of multiply-adds, however long"}};
  rows.push_back(ranked_row("outer", outer, {{{4}, {3}}, {{1}, {5}}, {{0}, {3}}, {{7}, {9}}},
                            {{330}, {300}},
                            {{[]() -> Tensors {
                                return {outer(zeros({4, 1}), zeros({3}))};
                              },
                              "two vectors"}}));
  rows.back().dtypes = kEveryDType;  // nothing is summed
  return rows;
}

}  // namespace tg::test
