#include "ops/table.h"

namespace tg::test {
namespace {

// Sample with a bias where there are three inputs.
Sample sample(std::vector<In> in, const Conv2dOptions& options, const std::string& torch_options) {
  const bool bias = in.size() == 3;
  return {std::move(in),
          [=](const Tensors& x) -> Tensors {
            return {conv2d(x[0], x[1], bias ? x[2] : Tensor(), options)};
          },
          "F.conv2d(x0, x1, " + std::string(bias ? "x2" : "None") + torch_options + ")"};
}

double conv_flops(const Tensors& in, const Tensors& out) {
  const Tensor& w = in[1];
  return 2.0 * double(out[0].numel()) * double(w.size(1) * w.size(2) * w.size(3));
}

}  // namespace

Rows conv_rows() {
  Row row{.name = "conv2d"};
  row.samples = {
      sample({normal({2, 3, 5, 6}), normal({4, 3, 3, 3}), normal({4})}, {}, ""),
      sample({normal({2, 3, 7, 6}), normal({2, 3, 3, 2}), normal({2})}, {.stride = 2, .padding = 1},
             ", stride=2, padding=1"),
      sample({normal({1, 2, 8, 9}), normal({3, 2, 3, 3})}, {.padding = {2, 0}, .dilation = {2, 3}},
             ", padding=(2, 0), dilation=(2, 3)"),
      sample({normal({2, 4, 5, 4}), normal({6, 2, 2, 3}), normal({6})},
             {.padding = {0, 1}, .groups = 2}, ", padding=(0, 1), groups=2"),
      // One channel a group, two results each.
      sample({normal({2, 3, 5, 5}), normal({6, 1, 3, 3})}, {.padding = 1, .groups = 3},
             ", padding=1, groups=3"),
      sample({normal({2, 5, 3, 4}), normal({7, 5, 1, 1}), normal({7})}, {}, ""),
      sample({normal({2, 3, 7, 7}), normal({4, 3, 1, 1})}, {.stride = {2, 3}}, ", stride=(2, 3)"),
      sample({normal({1, 1, 9, 8}), normal({2, 1, 5, 5}), normal({2})},
             {.stride = {3, 2}, .padding = {2, 1}}, ", stride=(3, 2), padding=(2, 1)"),
      // The kernel covers the padded image.
      sample({normal({3, 2, 2, 3}), normal({2, 2, 4, 5})}, {.padding = 1}, ", padding=1"),
      // More padding than kernel: whole windows of zeros.
      sample({normal({1, 2, 3, 2}), normal({2, 2, 2, 1}), normal({2})}, {.stride = 2, .padding = 3},
             ", stride=2, padding=3"),
      // Strides and dilation with a common divisor.
      sample({normal({1, 2, 9, 11}), normal({2, 2, 3, 2})},
             {.stride = {2, 4}, .padding = {3, 1}, .dilation = {2, 6}},
             ", stride=(2, 4), padding=(3, 1), dilation=(2, 6)"),
      sample({normal({0, 3, 5, 5}), normal({2, 3, 3, 3}), normal({2})}, {}, ""),
  };
  row.fails = {
      {[]() -> Tensors {
         return {conv2d(zeros({2, 3, 8, 8}), zeros({4, 5, 3, 3}))};
       },
       "conv2d: input [2,3,8,8] has 3 channels, weight [4,5,3,3] with groups 1 takes 5"},
      {[]() -> Tensors {
         return {conv2d(zeros({2, 3, 4, 8}), zeros({4, 3, 5, 3}))};
       },
       "kernel of 5x3 (with dilation) is larger than the padded image of 4x8"},
      {[]() -> Tensors {
         return {conv2d(zeros({2, 3, 4, 8}), zeros({4, 3, 3, 3}), {}, {.dilation = 2})};
       },
       "kernel of 5x5 (with dilation) is larger than the padded image of 4x8"},
      {[]() -> Tensors {
         return {conv2d(zeros({2, 3, 8, 8}), zeros({4, 3, 3, 3}), zeros({3}))};
       },
       "bias of shape [3] does not fit weight [4,3,3,3]"},
      {[]() -> Tensors {
         return {conv2d(zeros({2, 4, 8, 8}), zeros({3, 2, 3, 3}), {}, {.groups = 2})};
       },
       "groups 2 does not divide the output channels of weight [3,2,3,3]"},
      {[]() -> Tensors {
         return {conv2d(zeros({2, 3, 8, 8}), zeros({4, 3, 3, 3}), {}, {.stride = {1, 0}})};
       },
       "stride must be positive, got 1x0"},
      {[]() -> Tensors {
         return {conv2d(zeros({3, 8, 8}), zeros({4, 3, 3, 3}))};
       },
       "takes images [N,C,H,W], got [3,8,8] - unsqueeze(x, 0)"},
      {[]() -> Tensors {
         return {conv2d(zeros({1, 3, 8, 8}), zeros({4, 3, 3, 3}, f64))};
       },
       "operands differ in dtype"},
  };
  row.no_0d = {"images have four dimensions",
               []() -> Tensors {
                 return {conv2d(zeros({}), zeros({4, 3, 3, 3}))};
               },
               "conv2d: takes images [N,C,H,W], got []"};
  row.optional = {2};
  row.large = [] {
    return sample({normal({12, 16, 20, 20}), normal({40, 16, 3, 3}), normal({40})}, {.padding = 1},
                  "");
  };
  row.flops = conv_flops;
  return {row};
}

}  // namespace tg::test
