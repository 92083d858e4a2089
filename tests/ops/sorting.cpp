#include <cmath>

#include "ops/table.h"

namespace tg::test {
namespace {

Row named(const std::string& name) {
  Row r{.name = name};
  r.dtypes = kEveryDType;
  return r;
}

// Equal values by rising index: what torch calls stable.
std::string torch_sort(int64_t dim, bool falling) {
  return "torch.sort(x0, dim=" + std::to_string(dim) +
         ", descending=" + (falling ? "True" : "False") + ", stable=True)";
}

Row sort_row() {
  auto along = [](int64_t dim, bool falling) {
    return [=](const Tensors& x) -> Tensors {
      auto [values, indices] = sort(x[0], dim, falling);
      return {values, indices};
    };
  };
  Row r = named("sort");
  r.samples = {{{normal({4, 7})}, along(-1, false), torch_sort(-1, false)},
               {{normal({4, 3, 2})}, along(0, true), torch_sort(0, true)},
               {{normal({2, 0})}, along(1, false), torch_sort(1, false)},
               {{normal({})}, along(0, false), torch_sort(0, false)},
               {{normal({200})}, along(0, true), torch_sort(0, true), false}};
  // 1, NaN, -inf, 0, -0, inf, NaN, 1
  for (bool falling : {false, true})
    r.samples.push_back(
        {{values({8}, {1, 0, -1, 0, -0.0, 1, 0, 1}), values({8}, {1, 0, 0, 1, 1, 0, 0, 1})},
         [along, falling](const Tensors& x) { return along(0, falling)({x[0] / x[1]}); },
         "(lambda x0: " + torch_sort(0, falling) + ")(x0 / x1)",
         false});
  r.fails = {{[]() -> Tensors {
                return {sort(zeros({2, 3}), 2).first};
              },
              "sort: dim 2 is out of range for rank 2"}};
  r.large = [along] { return Sample{{normal({40, 3000})}, along(-1, false), ""}; };
  return r;
}

Row argsort_row() {
  auto along = [](int64_t dim, bool falling) {
    return [=](const Tensors& x) -> Tensors { return {argsort(x[0], dim, falling)}; };
  };
  Row r = named("argsort");
  r.samples = {{{normal({4, 7})}, along(-1, false), torch_sort(-1, false) + "[1]"},
               {{normal({4, 3, 2})}, along(0, true), torch_sort(0, true) + "[1]"},
               {{normal({2, 0})}, along(0, false), torch_sort(0, false) + "[1]"},
               {{normal({})}, along(0, false), torch_sort(0, false) + "[1]"}};
  r.fails = {{[along]() -> Tensors { return along(1, false)({zeros({3})}); },
              "dim 1 is out of range for rank 1"}};
  r.opt_outs = {{Part::gradient, "indices have no derivative"}};
  r.large = [along] { return Sample{{normal({40, 3000})}, along(-1, false), ""}; };
  return r;
}

Row topk_row() {
  auto first = [](int64_t k, int64_t dim, bool largest) {
    return [=](const Tensors& x) -> Tensors {
      auto [values, indices] = topk(x[0], k, dim, largest);
      return {values, indices};
    };
  };
  auto torch = [](const std::string& part, int64_t dim, bool largest) {
    return "tuple(t[" + part + "] for t in " + torch_sort(dim, largest) + ")";
  };
  Row r = named("topk");
  r.samples = {{{normal({4, 7})}, first(3, -1, true), torch("..., :3", -1, true)},
               {{normal({5, 3})}, first(2, 0, false), torch(":2", 0, false)},
               {{normal({4, 3})}, first(0, 1, true), torch("..., :0", 1, true)},
               {{normal({})}, first(1, 0, true), torch("...", 0, true)},
               {{normal({150})}, first(150, 0, true), torch(":", 0, true)},
               {{normal({0, 3})}, first(2, 1, true), torch("..., :2", 1, true)}};
  r.samples.push_back({{values({5}, {1, 0, 3, 1, 3}), values({5}, {1, 0, 1, 0, 1})},
                       [first](const Tensors& x) { return first(4, 0, true)({x[0] / x[1]}); },
                       "(lambda x0: " + torch(":4", 0, true) + ")(x0 / x1)",
                       false});
  r.fails = {{[]() -> Tensors {
                return {topk(zeros({2, 3}), 4).first};
              },
              "topk: k = 4 of dim 1 of size 3"},
             {[]() -> Tensors {
                return {topk(zeros({0, 3}), 1, 0).first};
              },
              "topk: k = 1 of dim 0 of size 0"},
             {[]() -> Tensors {
                return {topk(zeros({2, 3}), -1).first};
              },
              "k = -1"}};
  r.large = [first] { return Sample{{normal({40, 3000})}, first(20, -1, true), ""}; };
  return r;
}

}  // namespace

Rows sorting_rows() { return {sort_row(), argsort_row(), topk_row()}; }

}  // namespace tg::test
