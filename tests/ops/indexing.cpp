#include <cmath>

#include "ops/table.h"

namespace tg::test {
namespace {

Row named(const std::string& name, std::vector<Sample> samples, std::vector<Fails> fails) {
  Row r{.name = name};
  r.dtypes = kEveryDType;
  r.samples = std::move(samples);
  r.fails = std::move(fails);
  return r;
}

Tensor ints(const std::vector<int64_t>& v, Device device = kCpuDevice) {
  return tensor(v, {int64_t(v.size())}).to(device);
}

Row index_row() {
  auto call = [](auto fn) { return [fn](const Tensors& x) -> Tensors { return {fn(x)}; }; };
  Row r = named("index",
                {{{normal({4, 5, 3}), integers({2, 2}, -4, 4)},
                  call([](auto& x) { return x[0].index({x[1]}); }),
                  "x0[x1]"},
                 {{normal({4, 5, 3}), integers({6}, 0, 4), integers({6}, 0, 3)},
                  call([](auto& x) {
                    return x[0].index({x[1], slice(), x[2]});
                  }),
                  "x0[x1, :, x2]"},
                 {{normal({2, 4, 5}), integers({3, 1}, 0, 4), integers({2}, 0, 5)},
                  call([](auto& x) {
                    return x[0].index({slice(), x[1], x[2]});
                  }),
                  "x0[:, x1, x2]"},
                 {{normal({4, 5}), booleans({4, 5})},
                  call([](auto& x) { return x[0].index({x[1]}); }),
                  "x0[x1]"},
                 {{normal({4, 5}), booleans({5})},
                  call([](auto& x) {
                    return x[0].index({slice(1, none, 2), x[1]});
                  }),
                  "x0[1::2, x1]"},
                 {{normal({4, 5, 2}), integers({3}, 0, 2)},
                  call([](auto& x) {
                    return x[0].index({-1, ellipsis, none, x[1]});
                  }),
                  "x0[-1, ..., None, x1]"},
                 {{normal({3, 2}), integers({0}, 0, 3)},
                  call([](auto& x) { return x[0].index({x[1]}); }),
                  "x0[x1]"},
                 {{normal({3, 0}), integers({2}, 0, 3)},
                  call([](auto& x) { return x[0].index({x[1]}); }),
                  "x0[x1]"},
                 {{normal({3}), integers({}, 0, 3)},
                  call([](auto& x) { return x[0].index({x[1]}); }),
                  "x0[x1]"},
                 {{normal({})}, call([](auto& x) { return x[0].index({none}); }), "x0[None]"},
                 {{normal({})},
                  call([](auto& x) {
                    return x[0].index({ellipsis, none});
                  }),
                  "x0[..., None]"},
                 {{normal({3, 4})},
                  call([](auto& x) {
                    return x[0].index({slice(none, none, 2), 1});
                  }),
                  "x0[::2, 1]"}},
                {{[]() -> Tensors { return {zeros({3}).index({3})}; },
                  "index: index 3 is out of range for dim 0 of size 3"},
                 {[]() -> Tensors {
                    return {zeros({2, 3}).index({slice(), ints({0, -4})})};
                  },
                  "index: index -4 is out of range for dim 1 of size 3"},
                 {[]() -> Tensors {
                    return {zeros({2, 3}).index({0, 0, 0})};
                  },
                  "3 dimensions are indexed, but the tensor has shape [2,3]"},
                 {[]() -> Tensors {
                    return {zeros({2, 3}).index({zeros({3}, boolean)})};
                  },
                  "a mask of shape [3] does not fit dim 0 on of [2,3]"},
                 {[]() -> Tensors {
                    return {zeros({2, 3}).index({zeros({3})})};
                  },
                  "integers or bool"},
                 {[]() -> Tensors {
                    return {zeros({2, 3}).index({ints({0, 1}), ints({0, 1, 2})})};
                  },
                  "do not broadcast"}});
  r.large = [] {
    return Sample{{normal({20, 3000}), integers({40}, 0, 20)},
                  [](const Tensors& x) -> Tensors { return {x[0].index({x[1]})}; },
                  "x0[x1]"};
  };
  return r;
}

// x0 with x1 written at an index that names no place twice.
Sample put_sample(In x, In value, Function<void(const Tensor&, const Tensor&)> put,
                  const std::string& torch) {
  return {{std::move(x), std::move(value)},
          [put = std::move(put)](const Tensors& t) -> Tensors {
            Tensor y = t[0].clone();
            put(y, t[1]);
            return {y};
          },
          "(lambda y: (y." + torch + ", y)[1])(x0.clone())"};
}

Row index_put_row() {
  Row r =
      named("index_put_",
            {put_sample(
                 normal({4, 5}), normal({3, 5}),
                 [](auto& x, auto& v) {
                   x.index_put_({ints({2, 0, 3}, x.device())}, v);
                 },
                 "__setitem__(torch.tensor([2, 0, 3]), x1)"),
             put_sample(
                 normal({4, 5}), normal({2, 1}),
                 [](auto& x, auto& v) {
                   x.index_put_({slice(none, none, 2), ints({1, -1}, x.device())}, v);
                 },
                 "__setitem__((slice(None, None, 2), torch.tensor([1, -1])), x1)"),
             put_sample(
                 normal({4, 5}), normal({5}), [](auto& x, auto& v) { x.index_put_({-1}, v); },
                 "__setitem__(-1, x1)"),
             put_sample(
                 normal({3, 2}), normal({}),
                 [](auto& x, auto& v) {
                   x.index_put_({ints({1, 0}, x.device()), ints({0, 1}, x.device())}, v);
                 },
                 "__setitem__((torch.tensor([1, 0]), torch.tensor([0, 1])), x1)"),
             put_sample(
                 normal({3, 2}), normal({0, 2}),
                 [](auto& x, auto& v) { x.index_put_({ints({}, x.device())}, v); },
                 "__setitem__(torch.tensor([], dtype=torch.long), x1)"),
             put_sample(
                 normal({}), normal({}), [](auto& x, auto& v) { x.index_put_({ellipsis}, v); },
                 "__setitem__(..., x1)"),
             put_sample(
                 normal({0, 2}), normal({2}),
                 [](auto& x, auto& v) { x.index_put_({ints({}, x.device())}, v); },
                 "__setitem__(torch.tensor([], dtype=torch.long), x1)"),
             put_sample(
                 normal({4, 3}), normal({5, 3}),
                 [](auto& x, auto& v) {
                   index_put_(x, {ints({1, 3, 1, 1, 0}, x.device())}, v, true);
                 },
                 "index_put_((torch.tensor([1, 3, 1, 1, 0]),), x1, accumulate=True)"),
             put_sample(
                 normal({4, 3}), normal({4}),
                 [](auto& x, auto& v) {
                   index_put_(transpose(x, 0, 1), {ints({1, 1}, x.device())}, v, true);
                 },
                 "t().index_put_((torch.tensor([1, 1]),), x1, accumulate=True)")},
            {{[]() -> Tensors {
                return {zeros({3}).index_put_({ints({0, 3})}, 1)};
              },
              "index_put_: index 3 is out of range for dim 0 of size 3"},
             {[]() -> Tensors {
                return {zeros({3}).index_put_({ints({0, 2})}, zeros({3}))};
              },
              "does not broadcast to [2]"},
             {[]() -> Tensors { return {ones({3}).requires_grad_().index_put_({ints({0})}, 1)}; },
              "a leaf that requires grad"}});
  r.large = [] {
    Sample s = put_sample(
        normal({20, 3000}), normal({40, 3000}),
        [](auto& x, auto& v) {
          std::vector<int64_t> at;
          for (int64_t i = 0; i < 40; ++i) at.push_back(i * i % 20);
          index_put_(x, {ints(at, x.device())}, v, true);
        },
        "");
    return s;
  };
  return r;
}

Row index_select_row() {
  auto along = [](int64_t dim) {
    return [dim](const Tensors& x) -> Tensors { return {index_select(x[0], dim, x[1])}; };
  };
  Row r = named("index_select",
                {{{normal({4, 3}), integers({5}, 0, 4)}, along(0), "x0.index_select(0, x1)"},
                 {{normal({2, 4, 3}), integers({5}, 0, 3)}, along(-1), "x0.index_select(-1, x1)"},
                 {{normal({4, 3}), integers({}, 0, 4)}, along(0), "x0.index_select(0, x1)"},
                 {{normal({4, 3}), integers({0}, 0, 4)}, along(1), "x0.index_select(1, x1)"},
                 {{normal({}), integers({1}, 0, 1)}, along(0), "x0.index_select(0, x1)"},
                 {{normal({3, 0}), integers({2}, 0, 3)}, along(0), "x0.index_select(0, x1)"}},
                {{[]() -> Tensors {
                    return {index_select(zeros({2, 3}), 1, ints({3}))};
                  },
                  "index_select: index 3 is out of range for dim 1 of size 3"},
                 {[]() -> Tensors {
                    return {index_select(zeros({2, 3}), 1, ints({-1}))};
                  },
                  "index -1 is out of range"},
                 {[]() -> Tensors {
                    return {index_select(zeros({2}), 0, zeros({1, 1}, i64))};
                  },
                  "indices have rank 1"}});
  r.large = [along] { return Sample{{normal({70, 300}), integers({1700}, 0, 300)}, along(1), ""}; };
  return r;
}

Row gather_row() {
  auto along = [](int64_t dim) {
    return [dim](const Tensors& x) -> Tensors { return {gather(x[0], dim, x[1])}; };
  };
  Row r = named("gather",
                {{{normal({4, 3}), integers({2, 3}, 0, 4)}, along(0), "x0.gather(0, x1)"},
                 {{normal({4, 3}), integers({2, 5}, 0, 3)}, along(1), "x0.gather(1, x1)"},
                 {{normal({2, 3, 4}), integers({2, 2, 4}, 0, 3)}, along(-2), "x0.gather(-2, x1)"},
                 {{normal({4, 3}), integers({4, 0}, 0, 3)}, along(1), "x0.gather(1, x1)"},
                 {{normal({}), integers({}, 0, 1)}, along(0), "x0.gather(0, x1)"},
                 {{normal({3, 0}), integers({2, 0}, 0, 3)}, along(0), "x0.gather(0, x1)"}},
                {{[]() -> Tensors {
                    return {gather(zeros({2, 3}), 1, full({2, 1}, 3, i64))};
                  },
                  "gather: index 3 is out of range for dim 1 of size 3"},
                 {[]() -> Tensors {
                    return {gather(zeros({2, 3}), 1, zeros({3, 1}, i64))};
                  },
                  "gather: the index [3,1] does not fit [2,3] outside of dim 1"},
                 {[]() -> Tensors {
                    return {gather(zeros({2, 3}), 1, zeros({2, 1}))};
                  },
                  "the index holds integers"}});
  r.large = [along] {
    return Sample{{normal({300, 400}), integers({500, 400}, 0, 300)}, along(0), ""};
  };
  return r;
}

Row scatter_row(const std::string& name) {
  auto along = [in_place = name == "scatter_add_"](int64_t dim) {
    return [=](const Tensors& x) -> Tensors {
      if (!in_place) return {scatter_add(x[0], dim, x[1], x[2])};
      return {scatter_add_(x[0].clone(), dim, x[1], x[2])};
    };
  };
  Row r = named(
      name,
      {{{normal({3, 4}), integers({5, 4}, 0, 3), normal({5, 4})},
        along(0),
        "x0.scatter_add(0, x1, x2)"},
       {{normal({3, 4}), integers({2, 6}, 0, 4), normal({3, 7})},
        along(1),
        "x0.scatter_add(1, x1, x2[:2, :6])"},
       {{normal({2, 3, 2}), integers({2, 3, 4}, 0, 2), normal({2, 3, 4})},
        along(-1),
        "x0.scatter_add(-1, x1, x2)"},
       {{normal({3}), integers({0}, 0, 3), normal({2})}, along(0), "x0.scatter_add(0, x1, x2[:0])"},
       {{normal({}), integers({}, 0, 1), normal({})}, along(0), "x0.scatter_add(0, x1, x2)"},
       {{normal({3, 0}), integers({2, 0}, 0, 3), normal({2, 0})},
        along(0),
        "x0.scatter_add(0, x1, x2)"}},
      {{[]() -> Tensors {
          return {scatter_add(zeros({2, 3}), 1, full({2, 1}, 3, i64), zeros({2, 1}))};
        },
        "scatter_add: index 3 is out of range for dim 1 of size 3"},
       {[]() -> Tensors {
          return {scatter_add(zeros({2, 3}), 1, zeros({2, 2}, i64), zeros({2, 1}))};
        },
        "the index [2,2] is larger than the source [2,1]"},
       {[]() -> Tensors { return {scatter_add(zeros({2}), 0, zeros({2}, i64), zeros({2}, f64))}; },
        "the source is f64 but the tensor f32"}});
  if (name == "scatter_add_") {  // its in-place form is checked along dim 0
    r.samples.erase(r.samples.begin() + 1, r.samples.begin() + 3);
    r.samples.push_back({{normal({2, 3}), integers({1, 2}, 0, 2), normal({1, 2})},
                         along(0),
                         "x0.scatter_add(0, x1, x2)"});
    r.inplace = [](const Tensors& x) -> Tensors { return {scatter_add_(x[0], 0, x[1], x[2])}; };
  }
  r.large = [along] {
    return Sample{
        {normal({300, 400}), integers({500, 400}, 0, 300), normal({500, 400})}, along(0), ""};
  };
  return r;
}

Rows mask_rows() {
  auto fill = [](double v) {
    return [v](const Tensors& x) -> Tensors { return {masked_fill(x[0], x[1], v)}; };
  };
  Row masked =
      named("masked_fill",
            {{{normal({3, 4}), booleans({3, 4})}, fill(2), "x0.masked_fill(x1, 2)"},
             {{normal({2, 3, 4}), booleans({3, 1})}, fill(2), "x0.masked_fill(x1, 2)"},
             {{normal({4}), booleans({3, 1})}, fill(0), "x0.masked_fill(x1, 0)"},
             {{normal({0, 3}), booleans({3})}, fill(1), "x0.masked_fill(x1, 1)"},
             {{normal({}), booleans({})}, fill(1), "x0.masked_fill(x1, 1)"},
             {{values({4}, {1, 0, 1, 2}), values({4}, {0, 0, 1, 1}), booleans({4})},
              [](const Tensors& x) -> Tensors { return {masked_fill(x[0] / x[1], x[2], 3)}; },
              "(x0 / x1).masked_fill(x2, 3)",
              false}},
            {{[]() -> Tensors { return {masked_fill(zeros({2}), zeros({2}), 1)}; },
              "masked_fill: the mask must be bool, got f32"},
             {[]() -> Tensors { return {masked_fill(zeros({2}), zeros({3}, boolean), 1)}; },
              "do not broadcast"},
             {[]() -> Tensors { return {masked_fill(zeros({2}, i8), zeros({2}, boolean), 200)}; },
              "the value 200 does not fit i8"}});
  masked.large = [fill] { return Sample{{normal({300, 400}), booleans({400})}, fill(1), ""}; };

  Row in_place = masked;
  in_place.name = "masked_fill_";
  in_place.samples = {
      {{normal({3, 4}), booleans({3, 4})},
       [](const Tensors& x) -> Tensors { return {masked_fill_(x[0].clone(), x[1], 2)}; },
       "x0.masked_fill(x1, 2)"}};
  for (const auto& [x, mask] : std::vector<std::pair<Shape, Shape>>{
           {{2, 3, 4}, {3, 1}}, {{0, 3}, {3}}, {{}, {}}, {{5}, {}}})
    in_place.samples.push_back(
        {{normal(x), booleans(mask)}, in_place.samples[0].call, "x0.masked_fill(x1, 2)"});
  in_place.inplace = [](const Tensors& x) -> Tensors { return {masked_fill_(x[0], x[1], 2)}; };
  in_place.fails = {{[]() -> Tensors {
                       return {masked_fill_(zeros({2}), zeros({2, 2}, boolean), 1)};
                     },
                     "does not broadcast to [2]"}};

  Call select = [](const Tensors& x) -> Tensors { return {masked_select(x[0], x[1])}; };
  Row selected = named("masked_select",
                       {{{normal({3, 4}), booleans({3, 4})}, select, "x0.masked_select(x1)"},
                        {{normal({2, 3, 4}), booleans({3, 1})}, select, "x0.masked_select(x1)"},
                        {{normal({4}), booleans({3, 1})}, select, "x0.masked_select(x1)"},
                        {{normal({0, 3}), booleans({3})}, select, "x0.masked_select(x1)"},
                        {{normal({}), booleans({})}, select, "x0.masked_select(x1)"}},
                       {{[]() -> Tensors { return {masked_select(zeros({2}), ones({2}))}; },
                         "masked_select: the mask must be bool"}});
  selected.large = [select] {
    return Sample{{normal({300, 400}), booleans({300, 400})}, select, ""};
  };

  Call places = [](const Tensors& x) -> Tensors { return {nonzero(x[0])}; };
  Row found = named("nonzero",
                    {{{constant(normal({3, 4}))}, places, "x0.nonzero()"},
                     {{constant(values({6}, {0, -0.0, 3, 2, 0, -1}))}, places, "x0.nonzero()"},
                     {{booleans({3, 2, 2})}, places, "x0.nonzero()"},
                     {{constant(normal({0, 2}))}, places, "x0.nonzero()"},
                     {{constant(normal({}))}, places, "x0.nonzero()"}},
                    {{[]() -> Tensors { return {nonzero(Tensor())}; }, "undefined"}});
  found.large = [places] { return Sample{{booleans({300, 400})}, places, ""}; };
  found.opt_outs = {{Part::gradient, "coordinates have no derivative"}};
  return {masked, in_place, selected, found};
}

Row triangle_row(const std::string& name, Tensor (*op)(const Tensor&, int64_t)) {
  auto at = [op](int64_t diagonal) {
    return [=](const Tensors& x) -> Tensors { return {op(x[0], diagonal)}; };
  };
  Row r = named(name,
                {{{normal({4, 5})}, at(0), "torch." + name + "(x0)"},
                 {{normal({2, 4, 3})}, at(1), "torch." + name + "(x0, 1)"},
                 {{normal({4, 4})}, at(-2), "torch." + name + "(x0, -2)"},
                 {{normal({0, 3})}, at(0), "torch." + name + "(x0)"},
                 {{normal({2, 3})}, at(9), "torch." + name + "(x0, 9)"}},
                {});
  const std::string message = name + ": needs 2 dimensions or more, got [";
  r.fails = {{[at]() -> Tensors { return at(0)({zeros({3})}); }, message + "3]"}};
  r.no_0d = {"two dimensions are meant", [at]() -> Tensors { return at(0)({zeros({})}); },
             message + "]"};
  r.large = [at] { return Sample{{normal({3, 200, 300})}, at(0), ""}; };
  return r;
}

Row one_hot_row() {
  auto into = [](int64_t classes) {
    return [classes](const Tensors& x) -> Tensors { return {one_hot(x[0], classes)}; };
  };
  Row r = named("one_hot",
                {{{integers({5}, 0, 4)}, into(4), "F.one_hot(x0, 4)"},
                 {{integers({2, 3}, 0, 7)}, into(-1), "F.one_hot(x0)"},
                 {{integers({}, 0, 3)}, into(3), "F.one_hot(x0, 3)"},
                 {{integers({0}, 0, 3)}, into(3), "F.one_hot(x0, 3)"}},
                {{[]() -> Tensors { return {one_hot(ints({4}), 4)}; },
                  "one_hot: index 4 is out of range for dim 1 of size 4"},
                 {[]() -> Tensors { return {one_hot(zeros({2}), 4)}; }, "indices are integers"},
                 {[]() -> Tensors { return {one_hot(zeros({0}, i64))}; }, "no indices"}});
  r.opt_outs = {{Part::gradient, "whole numbers have no derivative"}};
  r.large = [into] { return Sample{{integers({3000}, 0, 40)}, into(40), ""}; };
  return r;
}

}  // namespace

Rows indexing_rows() {
  Rows rows = {index_row(),
               index_put_row(),
               index_select_row(),
               gather_row(),
               scatter_row("scatter_add"),
               scatter_row("scatter_add_"),
               triangle_row("tril", tril),
               triangle_row("triu", triu),
               one_hot_row()};
  for (const Row& r : mask_rows()) rows.push_back(r);
  return rows;
}

}  // namespace tg::test
