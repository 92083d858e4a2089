#include <cmath>

#include "ops/table.h"

namespace tg::test {
namespace {

constexpr double kInf = INFINITY;
using Operator = Tensor (*)(const Tensor&, int64_t);

Row softmax_row(const std::string& name, Operator op) {
  const auto along = [op](int64_t dim) {
    return [op, dim](const Tensors& x) -> Tensors { return {op(x[0], dim)}; };
  };
  const auto sample = [&](In in, int64_t dim, bool smooth = true) {
    return Sample{{in}, along(dim), "torch." + name + "(x0, " + std::to_string(dim) + ")", smooth};
  };
  Row row{.name = name};
  row.samples = {
      sample(normal({3, 5}), 1), sample(normal({3, 37}), -1),  // whole packets and an odd end
      sample(normal({4, 6, 5}), 1),                            // values of a row lie apart
      sample(normal({5, 2, 3, 7}), 0), sample(normal({}), 0), sample(normal({2, 0}), 1),
      sample(normal({0, 3}), 1), sample(normal({4, 1}), 1),
      sample(values({2, 4}, {1000, 996, 0, -1000, -1000, -1004, -1008, -3008}), 1),
      // A hidden position; a row in which all are hidden gives NaN in that row only; an
      // infinity that wins gives NaN, as in PyTorch.
      sample(values({4, 3}, {0, -kInf, 1, -kInf, -kInf, -kInf, 0, 1, 2, kInf, 0, 1}), 1, false)};
  row.large = [along] { return Sample{{normal({150, 1000})}, along(1), ""}; };
  row.flops = [](const Tensors&, const Tensors& out) { return 5.0 * double(out[0].numel()); };
  return row;
}

}  // namespace

Rows softmax_rows() {
  Row soft = softmax_row("softmax", softmax), log = softmax_row("log_softmax", log_softmax);
  soft.fails = {{[]() -> Tensors {
                   return {softmax(zeros({2, 3}), 2)};
                 },
                 "softmax"},
                {[]() -> Tensors {
                   return {softmax(zeros({2, 3}, i32), 1)};
                 },
                 "floating point"}};
  log.fails = {{[]() -> Tensors {
                  return {log_softmax(zeros({2, 3}), -3)};
                },
                "log_softmax"},
               {[]() -> Tensors {
                  return {log_softmax(zeros({2, 3}, boolean), 1)};
                },
                "floating point"}};
  return {soft, log};
}

}  // namespace tg::test
