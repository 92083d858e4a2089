#include <cmath>

#include "ops/table.h"

namespace tg::test {
namespace {

// Inputs: q, k, v and, where there are four, the mask.
Sample sample(std::vector<In> in, bool causal = false, double scale = 0) {
  std::string torch = "F.scaled_dot_product_attention(x0, x1, x2";
  if (in.size() > 3) torch += ", attn_mask=x3";
  if (causal) torch += ", is_causal=True";
  if (scale != 0) torch += ", scale=" + std::to_string(scale);
  return {std::move(in),
          [causal, scale](const Tensors& x) -> Tensors {
            AttentionOptions o;
            o.causal = causal;
            if (scale != 0) o.scale = scale;
            if (x.size() > 3) o.mask = x[3];
            return {scaled_dot_product_attention(x[0], x[1], x[2], o)};
          },
          torch + ")"};
}

Sample with_dropout(std::vector<In> in) {
  return {std::move(in),
          [](const Tensors& x) -> Tensors {
            return {scaled_dot_product_attention(x[0], x[1], x[2], {.dropout = 0.25})};
          },
          ""};
}

Row attention_row() {
  constexpr double hidden = -INFINITY;
  Row row{.name = "scaled_dot_product_attention"};
  row.samples = {
      sample({normal({2, 3, 5, 4}), normal({2, 3, 7, 4}), normal({2, 3, 7, 6})}),
      sample({normal({2, 6, 4}), normal({2, 6, 4}), normal({2, 6, 4})}, true),
      sample({normal({5, 3}), normal({9, 3}), normal({9, 2})}, false, 0.5),
      sample({normal({9, 3}), normal({5, 3}), normal({5, 2})}, true),  // more queries than keys
      sample(
          {normal({2, 1, 3, 4}), normal({1, 3, 5, 4}), normal({5, 2})}),  // leading sizes stretch
      sample({normal({1, 1, 1}), normal({1, 1, 1}), normal({1, 1, 1})}),
      sample({normal({2, 0, 3}), normal({2, 4, 3}), normal({2, 4, 3})}),
      sample({normal({2, 4, 5, 3}), normal({2, 4, 6, 3}), normal({2, 4, 6, 3}), booleans({5, 6})}),
      sample({normal({2, 4, 5, 3}), normal({2, 4, 6, 3}), normal({2, 4, 6, 3}),
              booleans({2, 1, 1, 6})}),
      sample({normal({2, 5, 3}), normal({2, 4, 3}), normal({2, 4, 3}), normal({2, 5, 4})}),
      sample({normal({2, 5, 3}), normal({2, 4, 3}), normal({2, 4, 3}), constant(normal({5, 1}))}),
      // A query that sees no key gives 0, and no gradient.
      sample({normal({2, 3}), normal({4, 3}), normal({4, 3}),
              constant(values({2, 4}, {hidden, hidden, hidden, hidden, 0, hidden, 1, 0}))}),
      // Several blocks and odd ends.
      sample({normal({1, 2, 70, 5}), normal({1, 2, 70, 5}), normal({1, 2, 70, 3})}, true),
      with_dropout({normal({2, 6, 4}), normal({2, 7, 4}), normal({2, 7, 5})})};
  row.samples[12].smooth = false;  // smooth, but a finite-difference check of it takes minutes
  row.fails = {
      {[]() -> Tensors {
         return {scaled_dot_product_attention(zeros({2, 3}), zeros({2, 4}), zeros({2, 4}))};
       },
       "last size: [2,3] [2,4]"},
      {[]() -> Tensors {
         return {scaled_dot_product_attention(zeros({2, 3}), zeros({4, 3}), zeros({5, 3}))};
       },
       "number of keys: [4,3] [5,3]"},
      {[]() -> Tensors {
         return {scaled_dot_product_attention(zeros({2, 3}), zeros({2, 3}), zeros({2, 3}),
                                              {.mask = ones({2, 2}, boolean), .causal = true})};
       },
       "causal"},
      {[]() -> Tensors {
         return {scaled_dot_product_attention(zeros({2, 3}), zeros({2, 3}), zeros({2, 3}),
                                              {.mask = ones({3, 2}, boolean)})};
       },
       "[3,2]"},
      {[]() -> Tensors {
         return {scaled_dot_product_attention(zeros({2, 3}), zeros({2, 3}), zeros({2, 3}),
                                              {.dropout = 1.5})};
       },
       "1.5"},
      {[]() -> Tensors {
         return {scaled_dot_product_attention(zeros({3}), zeros({2, 3}), zeros({2, 3}))};
       },
       "two dimensions"}};
  row.no_0d = {"queries and features are two dimensions",
               []() -> Tensors {
                 return {scaled_dot_product_attention(zeros({}), zeros({2, 3}), zeros({2, 3}))};
               },
               "q, k and v need at least two dimensions, got [] [2,3]"};
  row.optional = {3};  // the mask
  row.large = [] {
    return sample({normal({1, 2, 200, 16}), normal({1, 2, 230, 16}), normal({1, 2, 230, 16})},
                  true);
  };
  row.flops = [](const Tensors& in, const Tensors& out) {
    return 2.0 * double(out[0].numel() / out[0].size(-1)) * double(in[1].size(-2)) *
           double(in[1].size(-1) + in[2].size(-1));
  };
  row.ulps = 32;
  return row;
}

}  // namespace

Rows attention_rows() { return {attention_row()}; }

}  // namespace tg::test
