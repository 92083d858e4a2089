#include "ops/table.h"

namespace tg::test {
namespace {

using View = Function<Tensor(const Tensor&)>;

Sample sample(Shape shape, View view, const std::string& torch) {
  return {{normal(shape)},
          [view = std::move(view)](const Tensors& x) -> Tensors { return {view(x[0])}; },
          torch};
}

Row row(const std::string& name, std::vector<Sample> samples, std::vector<Fails> fails) {
  Row r{.name = name};
  r.dtypes = kEveryDType;
  r.samples = std::move(samples);
  r.fails = std::move(fails);
  return r;
}

// No 0-d tensor is taken.
Row no_0d(Row r, const std::string& why, Tensor (*call)(const Tensor&),
          const std::string& message) {
  r.no_0d = {why, [call]() -> Tensors { return {call(zeros({}))}; }, message};
  return r;
}

Rows reshape_rows() {
  auto to = [](Shape shape) { return [shape](const Tensor& x) { return reshape(x, shape); }; };
  Rows rows;
  rows.push_back(row("reshape",
                     {sample({2, 3, 4}, to({6, -1}), "x0.reshape(6, -1)"),
                      sample(
                          {2, 3, 4},
                          [](auto& x) {
                            return reshape(transpose(x, 0, 2), {8, 3});
                          },
                          "x0.transpose(0, 2).reshape(8, 3)"),
                      sample({}, to({1, 1}), "x0.reshape(1, 1)"),
                      sample({0, 3}, to({3, -1, 2}), "x0.reshape(3, 0, 2)"),
                      sample({6}, to({2, 3}), "x0.reshape(2, 3)")},
                     {{[]() -> Tensors {
                         return {reshape(zeros({2, 3}), {4, -1})};
                       },
                       "reshape: shape [4,-1] does not hold the 6 elements of [2,3]"},
                      {[]() -> Tensors {
                         return {reshape(zeros({2, 3}), {-1, -1})};
                       },
                       "only one size may be -1"},
                      {[]() -> Tensors {
                         return {reshape(zeros({0, 3}), {0, -1})};
                       },
                       "-1 could be any size"},
                      {[]() -> Tensors {
                         return {reshape(zeros({2, 3}), {7})};
                       },
                       "does not hold"}}));
  rows.back().large = [] {
    return sample(
        {300, 400},
        [](auto& x) {
          return reshape(transpose(x, 0, 1), {200, 600});
        },
        "");
  };
  rows.push_back(
      row("view",
          {sample(
               {2, 3, 4},
               [](auto& x) {
                 return view(contiguous(x), {4, 6});
               },
               "x0.reshape(4, 6)"),
           sample(
               {2, 6}, [](auto& x) { return view(contiguous(x), {-1}); }, "x0.reshape(-1)"),
           sample(
               {3, 4},
               [](auto& x) {
                 return view(transpose(contiguous(x), 0, 1), {2, 2, 3});
               },
               "x0.transpose(0, 1).reshape(2, 2, 3)"),
           sample(
               {2, 0},
               [](auto& x) {
                 return view(x, {0, 5});
               },
               "x0.reshape(0, 5)"),
           sample(
               {},
               [](auto& x) {
                 return view(x, {1, 1});
               },
               "x0.reshape(1, 1)")},
          {{[]() -> Tensors {
              return {view(transpose(zeros({2, 3}), 0, 1), {6})};
            },
            "view: only a copy can show it so: use reshape"},
           {[]() -> Tensors {
              return {view(channels_last(zeros({2, 3, 4, 4})), {2, 48})};
            },
            "view: the tensor is channels-last: use reshape"}}));
  rows.push_back(row(
      "flatten",
      {sample(
           {2, 3, 4}, [](auto& x) { return flatten(x, 1); }, "x0.flatten(1)"),
       sample(
           {2, 3, 4}, [](auto& x) { return flatten(x); }, "x0.flatten()"),
       sample(
           {}, [](auto& x) { return flatten(x); }, "x0.flatten()"),
       sample(
           {2, 0, 3}, [](auto& x) { return flatten(x, 0, 1); }, "x0.flatten(0, 1)"),
       sample(
           {2, 3, 2, 2}, [](auto& x) { return flatten(channels_last(x), 1); }, "x0.flatten(1)")},
      {{[]() -> Tensors {
          return {flatten(zeros({2, 3}), 1, 0)};
        },
        "comes after"}}));
  return rows;
}

Rows size_one_rows() {
  auto squeezed = [](const Tensor& x) { return squeeze(x); };
  auto at = [](int64_t dim) { return [dim](const Tensor& x) { return unsqueeze(x, dim); }; };
  return {row("squeeze",
              {sample({1, 3, 1, 2}, squeezed, "x0.squeeze()"), sample({}, squeezed, "x0.squeeze()"),
               sample({1, 1}, squeezed, "x0.squeeze()"), sample({1, 0}, squeezed, "x0.squeeze()"),
               sample(
                   {2, 1, 3}, [](auto& x) { return squeeze(x, -2); }, "x0.squeeze(-2)"),
               sample(
                   {2, 3}, [](auto& x) { return squeeze(x, 0); }, "x0.squeeze(0)")},
              {{[]() -> Tensors {
                  return {squeeze(zeros({2, 1}), 2)};
                },
                "squeeze: dim 2 is out of range for rank 2"}}),
          row("unsqueeze",
              {sample({2, 3}, at(0), "x0.unsqueeze(0)"), sample({2, 3}, at(-1), "x0.unsqueeze(-1)"),
               sample({}, at(0), "x0.unsqueeze(0)"), sample({0, 2}, at(1), "x0.unsqueeze(1)")},
              {{[]() -> Tensors { return {unsqueeze(zeros({2}), 2)}; }, "dim 2 is out of range"}})};
}

Rows permuting_rows() {
  Rows rows = {
      row("transpose",
          {sample(
               {2, 3, 4}, [](auto& x) { return transpose(x, 0, -1); }, "x0.transpose(0, -1)"),
           sample(
               {3, 1}, [](auto& x) { return transpose(x, 0, 1); }, "x0.transpose(0, 1)"),
           sample(
               {}, [](auto& x) { return transpose(x, 0, -1); }, "x0.transpose(0, -1)"),
           sample(
               {0, 3}, [](auto& x) { return transpose(x, 1, 0); }, "x0.transpose(1, 0)")},
          {{[]() -> Tensors {
              return {transpose(zeros({2, 3}), 0, 2)};
            },
            "transpose: dim 2 is out of range for rank 2"}}),
      row("t",
          {sample(
               {2, 3}, [](auto& x) { return t(x); }, "x0.t()"),
           sample(
               {4}, [](auto& x) { return t(x) * 1; }, "x0.t() * 1"),
           sample(
               {}, [](auto& x) { return t(x) * 1; }, "x0.t() * 1"),
           sample(
               {0, 2}, [](auto& x) { return t(x); }, "x0.t()")},
          {{[]() -> Tensors {
              return {t(zeros({2, 3, 4}))};
            },
            "needs at most 2 dimensions"}}),
      row("permute",
          {sample(
               {2, 3, 4},
               [](auto& x) {
                 return permute(x, {2, 0, 1});
               },
               "x0.permute(2, 0, 1)"),
           sample(
               {2, 1, 3, 2},
               [](auto& x) {
                 return permute(x, {0, -2, -1, 1});
               },
               "x0.permute(0, 2, 3, 1)"),
           sample(
               {}, [](auto& x) { return permute(x, {}); }, "x0.permute(())"),
           sample(
               {2, 0},
               [](auto& x) {
                 return permute(x, {1, 0});
               },
               "x0.permute(1, 0)")},
          {{[]() -> Tensors {
              return {permute(zeros({2, 3}), {0, -2})};
            },
            "permute: dim 0 is named twice"},
           {[]() -> Tensors {
              return {permute(zeros({2, 3}), {0})};
            },
            "one entry for each"}})};
  rows.push_back(row("expand",
                     {sample(
                          {2, 1, 3},
                          [](auto& x) {
                            return expand(x, {4, 2, 5, -1});
                          },
                          "x0.expand(4, 2, 5, -1)"),
                      sample(
                          {},
                          [](auto& x) {
                            return expand(x, {2, 3});
                          },
                          "x0.expand(2, 3)"),
                      sample(
                          {1, 3},
                          [](auto& x) {
                            return expand(x, {0, 3});
                          },
                          "x0.expand(0, 3)"),
                      sample(
                          {0, 3},
                          [](auto& x) {
                            return expand(x, {2, 0, 3});
                          },
                          "x0.expand(2, 0, 3)"),
                      sample(
                          {2, 3},
                          [](auto& x) {
                            return expand(x, {-1, 3});
                          },
                          "x0.expand(-1, 3)")},
                     {{[]() -> Tensors {
                         return {expand(zeros({2, 3}), {4, 3})};
                       },
                       "expand: shape [2,3] does not broadcast to [4,3]"},
                      {[]() -> Tensors {
                         return {expand(zeros({3}), {-1, 3})};
                       },
                       "-1 for a new dimension"}}));
  return rows;
}

Rows part_rows() {
  Rows rows;
  rows.push_back(row(
      "slice",
      {sample(
           {5, 4}, [](auto& x) { return slice(x, 0, 1, 5, 2); }, "x0[1:5:2]"),
       sample(
           {5, 4}, [](auto& x) { return slice(x, -1, -3, 100); }, "x0[:, -3:100]"),
       sample(
           {5}, [](auto& x) { return slice(x, 0, 3, 2); }, "x0[3:2]"),
       sample(
           {0, 2}, [](auto& x) { return slice(x, 1, 0, 1); }, "x0[:, 0:1]"),
       sample(
           {7, 2}, [](auto& x) { return slice(x, 0, -100, -1, 3); }, "x0[-100:-1:3]")},
      {{[]() -> Tensors { return {slice(zeros({3}), 0, 0, 1, -1)}; }, "step must be 1 or more"}}));
  rows.back() = no_0d(
      rows.back(), "there is no dimension", [](const Tensor& x) { return slice(x, 0, 0, 1); },
      "slice: a tensor of rank 0 cannot be sliced");
  rows.push_back(
      row("narrow",
          {sample(
               {5, 4}, [](auto& x) { return narrow(x, 0, 1, 3); }, "x0.narrow(0, 1, 3)"),
           sample(
               {5, 4}, [](auto& x) { return narrow(x, 1, -2, 2); }, "x0.narrow(1, -2, 2)"),
           sample(
               {5}, [](auto& x) { return narrow(x, 0, 5, 0); }, "x0.narrow(0, 5, 0)"),
           sample(
               {2, 0}, [](auto& x) { return narrow(x, 0, 1, 1); }, "x0.narrow(0, 1, 1)")},
          {{[]() -> Tensors { return {narrow(zeros({3}), 0, 2, 2)}; },
            "narrow: start 2 and length 2 do not fit dim 0 of size 3"}}));
  rows.back() = no_0d(
      rows.back(), "there is no dimension", [](const Tensor& x) { return narrow(x, 0, 0, 1); },
      "narrow: a tensor of rank 0 cannot be narrowed");
  rows.push_back(row("select",
                     {sample(
                          {3, 4}, [](auto& x) { return select(x, 0, 1); }, "x0.select(0, 1)"),
                      sample(
                          {3, 4}, [](auto& x) { return select(x, 1, -1); }, "x0.select(1, -1)"),
                      sample(
                          {3}, [](auto& x) { return select(x, 0, 2); }, "x0.select(0, 2)"),
                      sample(
                          {2, 0}, [](auto& x) { return select(x, 0, 0); }, "x0.select(0, 0)")},
                     {{[]() -> Tensors {
                         return {select(zeros({2, 3}), 1, 3)};
                       },
                       "select: index 3 is out of range for dim 1 of size 3"}}));
  rows.back() = no_0d(
      rows.back(), "there is no dimension", [](const Tensor& x) { return select(x, 0, 0); },
      "select: a tensor of rank 0 cannot be indexed");
  rows.push_back(row(
      "unfold",
      {sample(
           {7, 2}, [](auto& x) { return unfold(x, 0, 3, 2); }, "x0.unfold(0, 3, 2)"),
       sample(
           {2, 6}, [](auto& x) { return unfold(x, -1, 4, 1); }, "x0.unfold(-1, 4, 1)"),
       sample(
           {3}, [](auto& x) { return unfold(x, 0, 3, 5); }, "x0.unfold(0, 3, 5)"),
       sample(
           {0, 4}, [](auto& x) { return unfold(x, 1, 2, 2); }, "x0.unfold(1, 2, 2)"),
       sample(
           {4}, [](auto& x) { return unfold(x, 0, 0, 1); }, "x0.unfold(0, 0, 1)"),
       sample(
           {}, [](auto& x) { return unfold(x, 0, 1, 1); }, "x0.unfold(0, 1, 1)")},
      {{[]() -> Tensors { return {unfold(zeros({3}), 0, 4, 1)}; }, "longer than dim 0 of size 3"},
       {[]() -> Tensors { return {unfold(zeros({3}), 0, 2, 0)}; }, "step 1 or more"}}));
  rows.push_back(
      row("diagonal",
          {sample(
               {3, 4}, [](auto& x) { return diagonal(x); }, "x0.diagonal()"),
           sample(
               {3, 4, 2}, [](auto& x) { return diagonal(x, 1, -1, 0); }, "x0.diagonal(1, -1, 0)"),
           sample(
               {4, 3}, [](auto& x) { return diagonal(x, -2); }, "x0.diagonal(-2)"),
           sample(
               {3, 3}, [](auto& x) { return diagonal(x, 5); }, "x0.diagonal(5)"),
           sample(
               {0, 3}, [](auto& x) { return diagonal(x); }, "x0.diagonal()")},
          {{[]() -> Tensors { return {diagonal(zeros({3}))}; }, "needs 2 dimensions"},
           {[]() -> Tensors {
              return {diagonal(zeros({3, 3}), 0, 1, -1)};
            },
            "are both 1"}}));
  rows.back() = no_0d(
      rows.back(), "two dimensions are meant", [](const Tensor& x) { return diagonal(x); },
      "diagonal: needs 2 dimensions or more, got []");
  // Over x as it lies in memory, so a row-major copy comes first.
  rows.push_back(
      row("as_strided",
          {sample(
               {3, 4},
               [](auto& x) {
                 return as_strided(contiguous(x) * 1, {2, 3}, {4, 1}, 1);
               },
               "(x0 * 1).as_strided((2, 3), (4, 1), 1)"),
           sample(
               {6},
               [](auto& x) {
                 return as_strided(x * 1, {3, 3}, {1, 1}, 0);
               },
               "(x0 * 1).as_strided((3, 3), (1, 1), 0)"),
           sample(
               {4}, [](auto& x) { return as_strided(x * 1, {5}, {0}, 2); },
               "(x0 * 1).as_strided((5,), (0,), 2)"),
           sample(
               {4},
               [](auto& x) {
                 return as_strided(x * 1, {2, 0}, {1, 1}, 1);
               },
               "(x0 * 1).as_strided((2, 0), (1, 1), 1)"),
           sample(
               {}, [](auto& x) { return as_strided(x * 1, {2}, {0}, 0); },
               "(x0 * 1).as_strided((2,), (0,), 0)"),
           sample(
               {0},
               [](auto& x) {
                 return as_strided(x * 1, {0, 2}, {2, 1}, 0);
               },
               "(x0 * 1).as_strided((0, 2), (2, 1), 0)"),
           sample(
               {2, 3},
               [](auto& x) { return as_strided(transpose(contiguous(x) * 1, 0, 1), {3}, {2}, 1); },
               "(x0 * 1).t().as_strided((3,), (2,), 1)"),
           sample(
               {3},
               [](auto& x) {
                 return as_strided(expand(unsqueeze(x * 1, 1), {3, 2}), {4}, {0}, 1);
               },
               "(x0 * 1).unsqueeze(1).expand(3, 2).as_strided((4,), (0,), 1)")},
          {{[]() -> Tensors { return {as_strided(zeros({3}), {2}, {3}, 0)}; },
            "reach outside of the storage"},
           {[]() -> Tensors { return {as_strided(zeros({3}), {2}, {-1}, 1)}; },
            "negative size or stride"},
           {[]() -> Tensors {
              return {as_strided(zeros({3}), {2}, {1, 1}, 0)};
            },
            "differ in rank"}}));
  return rows;
}

// The large samples of rows that only look at x in another way: the backward is what moves.
struct LargeView {
  const char* row;
  Shape shape;
  View view;
};
std::vector<LargeView> large_views() {
  return {{"view",
           {300, 400},
           [](const Tensor& x) {
             return view(x, {400, 300});
           }},
          {"flatten", {300, 400}, [](const Tensor& x) { return flatten(x); }},
          {"squeeze", {300, 1, 400}, [](const Tensor& x) { return squeeze(x); }},
          {"unsqueeze", {300, 400}, [](const Tensor& x) { return unsqueeze(x, 1); }},
          {"transpose", {300, 400}, [](const Tensor& x) { return transpose(x, 0, 1); }},
          {"t", {300, 400}, [](const Tensor& x) { return t(x); }},
          {"permute",
           {30, 40, 100},
           [](const Tensor& x) {
             return permute(x, {2, 0, 1});
           }},
          {"expand",
           {1, 400},
           [](const Tensor& x) {
             return expand(x, {300, 400});
           }},
          {"slice", {600, 400}, [](const Tensor& x) { return slice(x, 1, 1, 400, 2); }},
          {"narrow", {300, 400}, [](const Tensor& x) { return narrow(x, 1, 50, 300); }},
          {"select", {3, 200, 300}, [](const Tensor& x) { return select(x, 0, 1); }},
          {"unfold", {300, 400}, [](const Tensor& x) { return unfold(x, 1, 5, 2); }},
          {"diagonal", {300, 400}, [](const Tensor& x) { return diagonal(x); }},
          {"as_strided", {330, 300}, [](const Tensor& x) {
             return as_strided(x, {300, 330}, {1, 300}, 0);
           }}};
}

}  // namespace

Rows view_rows() {
  Rows all;
  for (const Rows& rows : {reshape_rows(), size_one_rows(), permuting_rows(), part_rows()})
    all.insert(all.end(), rows.begin(), rows.end());
  for (const LargeView& large : large_views())
    for (Row& row : all)
      if (row.name == large.row) {
        row.large = [large] { return sample(large.shape, large.view, ""); };
        row.opt_outs.push_back({Part::forward_split, "a view: the forward moves no elements"});
      }
  return all;
}

}  // namespace tg::test
