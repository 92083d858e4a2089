#include "ops/table.h"

namespace tg::test {
namespace {

Row layer_norm_row() {
  // Inputs: x and, where there are more, weight and bias.
  const auto sample = [](Shape normalized, std::vector<In> in, double eps = 1e-5) {
    std::string torch = "F.layer_norm(x0, " + to_text(normalized);
    if (in.size() > 1) torch += ", weight=x1";
    if (in.size() > 2) torch += ", bias=x2";
    return Sample{std::move(in),
                  [normalized, eps](const Tensors& x) -> Tensors {
                    return {layer_norm(x[0], normalized, x.size() > 1 ? x[1] : Tensor(),
                                       x.size() > 2 ? x[2] : Tensor(), eps)};
                  },
                  torch + ", eps=" + to_text(eps) + ")"};
  };
  Row row{.name = "layer_norm"};
  row.samples = {
      sample({5}, {normal({3, 5}), normal({5}), normal({5})}),
      sample({37}, {normal({2, 4, 37}), positive({37}), normal({37})}),
      sample({3, 4}, {normal({2, 2, 3, 4}), normal({3, 4})}),  // two dimensions, no bias
      sample({6}, {normal({4, 6})}, 0.25),                     // no weight
      sample({6}, {normal({6}), normal({6}), normal({6})}),    // one row
      sample({3}, {normal({0, 3}), normal({3}), normal({3})}),
      sample({4}, {values({2, 4}, {1000, 996, 1008, 1004, 7, 7, 7, 8}), normal({4}), normal({4})})};
  row.fails = {{[]() -> Tensors {
                  return {layer_norm(zeros({2, 3}), {4})};
                },
                "[4]"},
               {[]() -> Tensors {
                  return {layer_norm(zeros({2, 3}), {3}, ones({2}))};
                },
                "weight"},
               {[]() -> Tensors {
                  return {layer_norm(zeros({2, 3}), {3}, ones({3}, f64))};
                },
                "f64"},
               {[]() -> Tensors { return {layer_norm(zeros({3}), {})}; }, "last dimensions"}};
  row.no_0d = {"there is no dimension to normalize",
               []() -> Tensors { return {layer_norm(zeros({}), {1})}; },
               "layer_norm: the normalized shape [1] must be the last dimensions of the input []"};
  row.optional = {1, 2};  // weight and bias
  row.large = [sample] {
    return sample({300}, {normal({400, 300}), normal({300}), normal({300})});
  };
  row.flops = [](const Tensors& in, const Tensors&) { return 8.0 * double(in[0].numel()); };
  row.ulps = 32;
  return row;
}

}  // namespace

Rows normalization_rows() { return {layer_norm_row()}; }

}  // namespace tg::test
