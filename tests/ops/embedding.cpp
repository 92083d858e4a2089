#include "ops/table.h"

namespace tg::test {
namespace {

Row embedding_row() {
  // `padding` 99: none.
  const auto sample = [](In indices, In weight, int64_t padding = 99) {
    const std::string option = padding == 99 ? "" : ", padding_idx=" + std::to_string(padding);
    return Sample{{indices, weight},
                  [padding](const Tensors& x) -> Tensors {
                    if (padding == 99) return {embedding(x[0], x[1])};
                    return {embedding(x[0], x[1], padding)};
                  },
                  "F.embedding(x0, x1" + option + ")"};
  };
  Row row{.name = "embedding"};
  row.dtypes = kEveryDType;
  row.samples = {sample(integers({7}, 0, 5), normal({5, 3})),
                 sample(integers({2, 3, 4}, 0, 4), normal({4, 9})),  // every row several times
                 sample(integers({}, 0, 5), normal({5, 3})),
                 sample(integers({0}, 0, 5), normal({5, 3})),
                 sample(integers({6}, 0, 5), normal({5, 0})),
                 sample(integers({9}, 0, 5), normal({5, 3}), 2),
                 sample(integers({3, 3}, 0, 5), normal({5, 3}), -1)};
  // The padding row gets no gradient although the result depends on it.
  row.samples[5].smooth = row.samples[6].smooth = false;
  row.fails = {{[]() -> Tensors {
                  return {embedding(full({2}, 5, {i64}), zeros({5, 3}))};
                },
                "index 5 at position 0 is outside of [0, 5)"},
               {[]() -> Tensors {
                  return {embedding(full({2}, -1, {i64}), zeros({5, 3}))};
                },
                "index -1"},
               {[]() -> Tensors {
                  return {embedding(zeros({2}), zeros({5, 3}))};
                },
                "integers"},
               {[]() -> Tensors { return {embedding(zeros({2}, i64), zeros({5}))}; }, "[5]"},
               {[]() -> Tensors {
                  return {embedding(zeros({2}, i64), zeros({5, 3}), 5)};
                },
                "padding_index 5"}};
  row.large = [sample] { return sample(integers({3000}, 0, 200), normal({200, 300})); };
  return row;
}

}  // namespace

Rows embedding_rows() { return {embedding_row()}; }

}  // namespace tg::test
