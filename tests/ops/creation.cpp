#include <cmath>

#include "ops/table.h"

namespace tg::test {
namespace {

const std::vector<Shape> kShapes = {{3, 5}, {2, 1, 4}, {0, 3}, {}, {257}};

// An operator of one tensor at the usual shapes.
Row row(const std::string& name, Tensor (*op)(const Tensor&), const std::string& torch) {
  Row r{.name = name};
  r.dtypes = kEveryDType;
  for (const Shape& shape : kShapes)
    r.samples.push_back(
        {{normal(shape)}, [op](const Tensors& x) -> Tensors { return {op(x[0])}; }, torch});
  r.large = [op] {
    return Sample{{normal({300, 400})},
                  [op](const Tensors& x) -> Tensors { return {op(transpose(x[0], 0, 1))}; },
                  ""};
  };
  return r;
}

Row constant_row(const std::string& name, Tensor (*op)(const Tensor&), const std::string& torch) {
  Row r = row(name, op, torch);
  r.opt_outs = {{Part::gradient, "the values do not depend on the input"}};
  return r;
}

Row cast_row() {
  Row r{.name = "cast"};
  r.dtypes = kEveryDType;
  auto to = [](DType t) { return [t](const Tensors& x) -> Tensors { return {cast(x[0], t)}; }; };
  for (const Shape& shape : kShapes)
    r.samples.push_back({{normal(shape)}, to(f64), "x0.to(torch.float64)"});
  r.samples.push_back({{constant(normal({40}))}, to(i32), "x0.to(torch.int32)"});
  r.samples.push_back({{constant(normal({40}))}, to(boolean), "x0.to(torch.bool)"});
  r.samples.push_back({{constant(positive({40}))}, to(u8), "x0.to(torch.uint8)"});
  r.samples.push_back({{booleans({7})}, to(f64), "x0.to(torch.float64)"});
  // inf, -inf, NaN, 1
  r.samples.push_back({{values({4}, {1, -1, 0, 1}), values({4}, {0, 0, 0, 1})},
                       [](const Tensors& x) -> Tensors { return {cast(x[0] / x[1], f64)}; },
                       "(x0 / x1).double()",
                       false});
  r.large = [to] { return Sample{{normal({300, 400})}, to(bf16), ""}; };
  return r;
}

Tensor as_channels_last(const Tensor& x) { return channels_last(x); }
Row channels_last_row() {
  Row r = row("channels_last", as_channels_last, "x0.clone()");
  r.samples.clear();
  for (const Shape& shape : {Shape{2, 3, 4, 5}, Shape{1, 2, 3, 3}, Shape{2, 1, 3, 2},
                             Shape{0, 2, 2, 2}, Shape{2, 4, 1, 1}})
    r.samples.push_back({{normal(shape)},
                         [](const Tensors& x) -> Tensors { return {channels_last(x[0])}; },
                         "x0.clone()"});
  r.no_0d = {"four dimensions are meant", []() -> Tensors { return {channels_last(zeros({}))}; },
             "channels_last: needs [N,C,H,W], got f32[]"};
  r.fails = {{[]() -> Tensors { return {channels_last(zeros({2, 3}))}; }, "needs [N,C,H,W]"}};
  r.large = [] {
    return Sample{{normal({4, 30, 40, 40})},
                  [](const Tensors& x) -> Tensors { return {channels_last(x[0])}; },
                  ""};
  };
  return r;
}

Row copy_row() {
  Call call = [](const Tensors& x) -> Tensors {
    Tensor y = x[0].clone();
    copy_(y, x[1]);
    return {y};
  };
  auto sample = [=](Shape x, Shape source) {
    return Sample{{normal(x), normal(source)}, call, "x0.clone().copy_(x1)"};
  };
  Row r{.name = "copy_"};
  r.dtypes = kEveryDType;
  r.samples = {sample({3, 5}, {3, 5}), sample({3, 5}, {5}), sample({2, 3, 4}, {3, 1}),
               sample({2, 0}, {1, 0}), sample({}, {}),      sample({4}, {})};
  r.samples.push_back(
      {{constant(normal({3, 4})), integers({4}, 0, 3)}, call, "x0.clone().copy_(x1)"});
  r.inplace = [](const Tensors& x) -> Tensors { return {copy_(x[0], x[1])}; };
  r.fails = {{[]() -> Tensors { return {copy_(zeros({2}), zeros({3}))}; },
              "copy_: shape [3] does not broadcast to [2]"},
             {[]() -> Tensors { return {copy_(expand(zeros({1}), {2}), zeros({2}))}; },
              "several elements of the tensor share one place"},
             {[]() -> Tensors { return {copy_(ones({2}).requires_grad_(), zeros({2}))}; },
              "a leaf that requires grad"}};
  r.large = [sample] { return sample({300, 400}, {400}); };
  return r;
}

Row fill_row(const std::string& name, const Tensor& (*op)(const Tensor&),
             const std::string& torch) {
  Row r{.name = name};
  r.dtypes = kEveryDType;
  for (const Shape& shape : kShapes)
    r.samples.push_back(
        {{normal(shape)}, [op](const Tensors& x) -> Tensors { return {op(x[0].clone())}; }, torch});
  // Part of a tensor: the rest keeps its gradient.
  r.samples.push_back({{normal({4, 6})},
                       [op](const Tensors& x) -> Tensors {
                         Tensor y = x[0].clone();
                         op(slice(y, 1, 1, 6, 2));
                         return {unsqueeze(y, 0)};
                       },
                       "torch.where(torch.arange(6) % 2 == 1, torch.full_like(x0, " +
                           std::string(name == "fill_" ? "2" : "0") + "), x0)[None]"});
  r.inplace = [op](const Tensors& x) -> Tensors { return {op(x[0])}; };
  r.opt_outs = {{Part::second_derivative, "the first derivative is a constant 0"},
                {Part::backward_split, "a gradient of 0 takes no work"}};
  r.large = [op] {
    return Sample{
        {normal({300, 400})}, [op](const Tensors& x) -> Tensors { return {op(x[0].clone())}; }, ""};
  };
  return r;
}

}  // namespace

Rows creation_rows() {
  Row full = constant_row(
      "full_like", [](const Tensor& x) { return full_like(x, 3); }, "torch.full_like(x0, 3)");
  Row fill = fill_row(
      "fill_", [](const Tensor& x) -> const Tensor& { return fill_(x, 2); }, "x0.clone().fill_(2)");
  fill.fails = {{[]() -> Tensors { return {fill_(zeros({2}, i8), 300)}; }, "does not fit i8"},
                {[]() -> Tensors { return {fill_(zeros({2}, u8), NAN)}; }, "does not fit u8"}};
  return {constant_row("zeros_like", zeros_like, "torch.zeros_like(x0)"),
          constant_row("ones_like", ones_like, "torch.ones_like(x0)"),
          full,
          cast_row(),
          row("clone", clone, "x0.clone()"),
          row("contiguous", contiguous, "x0.contiguous()"),
          channels_last_row(),
          copy_row(),
          fill,
          fill_row("zero_", zero_, "x0.clone().zero_()")};
}

}  // namespace tg::test
