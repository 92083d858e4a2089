#include <cmath>

#include "ops/table.h"

namespace tg::test {
namespace {

constexpr double kNan = NAN, kInf = INFINITY;

using Pool = Tensor (*)(const Tensor&, Size2, const Pool2dOptions&);

Sample sample(Pool pool, const std::string& name, In in, Size2 kernel, const Pool2dOptions& options,
              const std::string& torch_options, bool smooth = true) {
  return {{std::move(in)},
          [=](const Tensors& x) -> Tensors { return {pool(x[0], kernel, options)}; },
          "F." + name + "(x0, (" + std::to_string(kernel.h) + ", " + std::to_string(kernel.w) +
              ")" + torch_options + ")",
          smooth};
}

Row max_row() {
  const auto max = [](In in, Size2 kernel, const Pool2dOptions& options, const std::string& torch,
                      bool smooth = true) {
    return sample(max_pool2d, "max_pool2d", std::move(in), kernel, options, torch, smooth);
  };
  Row row{.name = "max_pool2d"};
  row.samples = {
      max(normal({2, 3, 4, 6}), 2, {}, ""),
      max(normal({2, 3, 7, 8}), 3, {.stride = 2, .padding = 1}, ", stride=2, padding=1"),
      max(normal({1, 20, 5, 4}), {2, 3}, {.stride = 1, .padding = {1, 0}},
          ", stride=1, padding=(1, 0)"),
      max(normal({2, 2, 7, 6}), 3, {.stride = 2, .ceil_mode = true}, ", stride=2, ceil_mode=True"),
      // More than 256 positions, and several of them hold the maximum.
      max(normal({1, 2, 20, 18}), {20, 18}, {}, "", false),
      max(normal({1, 2, 4, 5}), 1, {.stride = {3, 2}}, ", stride=(3, 2)"),
      max(normal({0, 2, 4, 4}), 2, {}, ""),
      // Equal values: the first takes the gradient.
      max(values({1, 1, 4, 4}, {1, 1, 2, 0, 1, 1, 2, 2, -1, -1, 5, 5, -1, -1, 5, 5}), 2, {}, "",
          false),
      max(values({1, 1, 2, 4}, {kNan, 0, 1, kNan, 3, 2, -kInf, 2}), 2, {}, "", false),
      max(values({1, 1, 2, 4}, {-kInf, -kInf, kInf, kInf, -kInf, -kInf, kInf, kInf}), 2, {}, "",
          false),
      max(values({1, 1, 2, 2}, {-1, -1, -1, -1}), 3, {.stride = 1, .padding = 1},
          ", stride=1, padding=1", false),
  };
  row.fails = {
      {[]() -> Tensors {
         return {max_pool2d(zeros({1, 1, 1, 1}), 3, {.stride = 3, .padding = 3})};
       },
       "padding 3x3 must be between 0 and half of the kernel 3x3"},
      {[]() -> Tensors {
         return {max_pool2d(zeros({1, 2, 3, 3}), {4, 2})};
       },
       "kernel 4x2 does not fit the image of [1,2,3,3]"},
      {[]() -> Tensors {
         return {max_pool2d(zeros({2, 3, 3}), 2)};
       },
       "takes images [N,C,H,W]"},
      {[]() -> Tensors {
         return {max_pool2d(zeros({1, 2, 3, 3}), 0)};
       },
       "kernel must be positive"},
      {[]() -> Tensors {
         return {max_pool2d(zeros({1, 2, 3, 3}), 2, {.stride = {1, -1}})};
       },
       "stride must be positive"},
  };
  row.no_0d = {"images have four dimensions",
               []() -> Tensors { return {max_pool2d(zeros({}), 2)}; },
               "max_pool2d: takes images [N,C,H,W], got []"};
  row.large = [max] { return max(normal({6, 30, 40, 40}), 3, {.stride = 2, .padding = 1}, ""); };
  return row;
}

Row avg_row() {
  const auto avg = [](In in, Size2 kernel, const Pool2dOptions& options, const std::string& torch) {
    return sample(avg_pool2d, "avg_pool2d", std::move(in), kernel, options, torch);
  };
  Row row{.name = "avg_pool2d"};
  row.samples = {
      avg(normal({2, 3, 4, 6}), 2, {}, ""),
      avg(normal({2, 3, 7, 8}), 3, {.stride = 2, .padding = 1}, ", stride=2, padding=1"),
      avg(normal({2, 20, 7, 8}), 3, {.stride = 2, .padding = 1, .count_include_pad = false},
          ", stride=2, padding=1, count_include_pad=False"),
      avg(normal({2, 3, 8, 7}), {3, 2}, {.stride = {2, 1}, .padding = {1, 0}, .ceil_mode = true},
          ", stride=(2, 1), padding=(1, 0), ceil_mode=True"),
      avg(normal({1, 2, 6, 5}), 4,
          {.stride = 3, .padding = 2, .ceil_mode = true, .count_include_pad = false},
          ", stride=3, padding=2, ceil_mode=True, count_include_pad=False"),
      avg(normal({0, 2, 4, 4}), 2, {}, ""),
  };
  row.fails = {
      {[]() -> Tensors {
         return {avg_pool2d(zeros({1, 2, 3, 3}), 2, {.padding = 2})};
       },
       "padding 2x2 must be between 0 and half of the kernel 2x2"},
      {[]() -> Tensors {
         return {avg_pool2d(zeros({1, 2, 3, 3}), {2, 4})};
       },
       "kernel 2x4 does not fit the image of [1,2,3,3]"},
  };
  row.no_0d = {"images have four dimensions",
               []() -> Tensors { return {avg_pool2d(zeros({}), 2)}; },
               "avg_pool2d: takes images [N,C,H,W], got []"};
  row.large = [avg] { return avg(normal({6, 30, 40, 40}), 3, {.stride = 2, .padding = 1}, ""); };
  return row;
}

Row adaptive_row() {
  const auto adaptive = [](In in, Size2 output) {
    return Sample{{std::move(in)},
                  [=](const Tensors& x) -> Tensors { return {adaptive_avg_pool2d(x[0], output)}; },
                  "F.adaptive_avg_pool2d(x0, (" + std::to_string(output.h) + ", " +
                      std::to_string(output.w) + "))"};
  };
  Row row{.name = "adaptive_avg_pool2d"};
  row.samples = {adaptive(normal({2, 3, 5, 7}), 1), adaptive(normal({2, 20, 5, 7}), {2, 3}),
                 adaptive(normal({1, 2, 4, 4}), 4), adaptive(normal({1, 2, 3, 2}), {5, 4}),
                 adaptive(normal({0, 2, 4, 4}), {2, 1})};
  row.fails = {
      {[]() -> Tensors {
         return {adaptive_avg_pool2d(zeros({1, 2, 3, 3}), {0, 1})};
       },
       "output size must be positive, got 0x1"},
      {[]() -> Tensors {
         return {adaptive_avg_pool2d(zeros({2, 3, 3}), 1)};
       },
       "takes images [N,C,H,W]"},
      {[]() -> Tensors {
         return {adaptive_avg_pool2d(zeros({1, 2, 0, 3}), 1)};
       },
       "the image is empty"},
  };
  row.no_0d = {"images have four dimensions",
               []() -> Tensors { return {adaptive_avg_pool2d(zeros({}), 1)}; },
               "adaptive_avg_pool2d: takes images [N,C,H,W], got []"};
  row.large = [adaptive] { return adaptive(normal({6, 30, 40, 40}), {7, 9}); };
  return row;
}

}  // namespace

Rows pooling_rows() { return {max_row(), avg_row(), adaptive_row()}; }

}  // namespace tg::test
