#include <cmath>

#include "ops/table.h"

namespace tg::test {
namespace {

// What is dropped is random, so there is no reference: dropout_test.cpp looks at the values. The
// table's driver seeds each call alike, which makes the operator a fixed linear map.
Row dropout_row() {
  const auto sample = [](In in, double p) {
    return Sample{{in}, [p](const Tensors& x) -> Tensors { return {dropout(x[0], p)}; }, ""};
  };
  Row row{.name = "dropout"};
  row.samples = {
      sample(normal({3, 5}), 0.5), sample(normal({2, 3, 7}), 0.25),
      sample(normal({}), 0.5),     sample(normal({0, 3}), 0.5),
      sample(normal({4, 6}), 1),   sample(values({4}, {INFINITY, -INFINITY, NAN, 1}), 0.5)};
  row.samples.back().smooth = false;
  row.fails = {{[]() -> Tensors { return {dropout(zeros({3}), -0.1)}; }, "p must be"},
               {[]() -> Tensors { return {dropout(zeros({3}), 1.5)}; }, "1.5"},
               {[]() -> Tensors { return {dropout(zeros({3}), NAN)}; }, "p must be"},
               {[]() -> Tensors { return {dropout(zeros({3}, i32), 0.5)}; }, "floating point"}};
  row.large = [sample] { return sample(normal({100, 333}), 0.5); };
  return row;
}

}  // namespace

Rows dropout_rows() { return {dropout_row()}; }

}  // namespace tg::test
