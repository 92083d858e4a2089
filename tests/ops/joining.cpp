#include "ops/table.h"

namespace tg::test {
namespace {

Sample joined(std::vector<Shape> shapes, Tensor (*op)(const Tensors&, int64_t), int64_t dim,
              const std::string& torch) {
  Sample s;
  std::string names;
  for (size_t i = 0; i < shapes.size(); ++i) {
    s.in.push_back(normal(shapes[i]));
    names += "x" + std::to_string(i) + ", ";
  }
  s.call = [op, dim](const Tensors& x) -> Tensors { return {op(x, dim)}; };
  s.torch = "torch." + torch + "([" + names + "], " + std::to_string(dim) + ")";
  return s;
}

Row cat_row() {
  Row r{.name = "cat"};
  r.dtypes = kEveryDType;
  r.samples = {joined({{2, 3}, {4, 3}}, cat, 0, "cat"),
               joined({{2, 3}, {2, 1}, {2, 2}}, cat, -1, "cat"),
               joined({{0, 2}, {3, 2}}, cat, 0, "cat"), joined({{2, 0}, {2, 0}}, cat, 0, "cat"),
               joined({{2, 3, 4}}, cat, 1, "cat")};
  r.samples.push_back({{normal({2, 2}), integers({2, 3}, 0, 9)},  // in their common dtype
                       [](const Tensors& x) -> Tensors { return {cat(x, 1)}; },
                       "torch.cat([x0, x1], 1)"});
  r.no_0d = {"there is no dimension to join",
             []() -> Tensors {
               return {cat({zeros({}), zeros({})})};
             },
             "cat: tensors of rank 0 have no dimension to join; use stack"};
  // An input twice gets both gradients.
  r.samples.push_back({{normal({2, 2})},
                       [](const Tensors& x) -> Tensors {
                         return {cat({x[0], x[0]}, 1)};
                       },
                       "torch.cat([x0, x0], 1)"});
  r.fails = {{[]() -> Tensors { return {cat({})}; }, "cat: needs at least one tensor"},
             {[]() -> Tensors {
                return {cat({zeros({2, 3}), zeros({2, 4})})};
              },
              "shapes differ outside of dim 0"},
             {[]() -> Tensors {
                return {cat({zeros({}), zeros({})})};
              },
              "use stack"},
             {[]() -> Tensors {
                return {cat({zeros({2}), Tensor()})};
              },
              "undefined"}};
  r.large = [] { return joined({{200, 300}, {200, 250}}, cat, 1, "cat"); };
  return r;
}

Row stack_row() {
  Row r{.name = "stack"};
  r.dtypes = kEveryDType;
  r.samples = {joined({{2, 3}, {2, 3}}, stack, 0, "stack"),
               joined({{2, 3}, {2, 3}}, stack, -1, "stack"),
               joined({{}, {}, {}}, stack, 0, "stack"), joined({{0}, {0}}, stack, 1, "stack")};
  r.fails = {{[]() -> Tensors {
                return {stack({zeros({2}), zeros({3})})};
              },
              "stack: shapes differ: tensor 0 has [2] but tensor 1 has [3]"},
             {[]() -> Tensors { return {stack({})}; }, "needs at least one tensor"}};
  r.large = [] { return joined({{200, 300}, {200, 300}}, stack, 1, "stack"); };
  return r;
}

const OptOut kViewOfParts = {Part::forward_split, "parts are views: the forward moves no elements"};

Row split_row() {
  Row r{.name = "split"};
  r.dtypes = kEveryDType;
  auto even = [](const Tensors& x) { return split(x[0], 2, 0); };
  r.samples = {{{normal({5, 2})}, even, "x0.split(2, 0)"},
               {{normal({2, 6})},
                [](const Tensors& x) {
                  return split(x[0], std::vector<int64_t>{1, 0, 5}, -1);
                },
                "x0.split([1, 0, 5], -1)"},
               {{normal({3})}, [](const Tensors& x) { return split(x[0], 9); }, "x0.split(9)"},
               {{normal({0, 2})}, even, "x0.split(2, 0)"}};
  r.fails = {{[]() -> Tensors {
                return split(zeros({4}), std::vector<int64_t>{1, 2});
              },
              "split: the sizes sum to 3 but dim 0 has 4"},
             {[]() -> Tensors { return split(zeros({4}), 0); }, "1 or more"}};
  r.no_0d = {"there is no dimension to cut", []() -> Tensors { return split(zeros({}), 1); },
             "split: a tensor of rank 0 cannot be split"};
  r.large = [] {
    return Sample{{normal({300, 400})}, [](const Tensors& x) { return split(x[0], 150); }, ""};
  };
  r.opt_outs = {kViewOfParts};
  return r;
}

Row chunk_row() {
  Row r{.name = "chunk"};
  r.dtypes = kEveryDType;
  r.samples = {
      {{normal({6, 2})}, [](const Tensors& x) { return chunk(x[0], 3); }, "x0.chunk(3)"},
      {{normal({2, 5})}, [](const Tensors& x) { return chunk(x[0], 4, 1); }, "x0.chunk(4, 1)"},
      {{normal({2})}, [](const Tensors& x) { return chunk(x[0], 5); }, "x0.chunk(5)"},
      {{normal({0, 2})}, [](const Tensors& x) { return chunk(x[0], 2); }, "x0.chunk(2)"}};
  r.fails = {{[]() -> Tensors { return chunk(zeros({4}), 0); }, "needs 1 chunk or more"}};
  r.no_0d = {"there is no dimension to cut", []() -> Tensors { return chunk(zeros({}), 1); },
             "chunk: a tensor of rank 0"};
  r.large = [] {
    return Sample{{normal({300, 400})}, [](const Tensors& x) { return chunk(x[0], 2, 1); }, ""};
  };
  r.opt_outs = {kViewOfParts};
  return r;
}

}  // namespace

Rows joining_rows() { return {cat_row(), stack_row(), split_row(), chunk_row()}; }

}  // namespace tg::test
