#include "tapegrad/nn/attention.h"

#include <limits>

#include "tapegrad/autograd/ops.h"
#include "tapegrad/nn/init.h"

namespace tg::nn {

MultiheadAttention::MultiheadAttention(int64_t dim, int64_t heads, MultiheadAttentionOptions o)
    : embed_dim(dim), num_heads(heads), options(o), out_proj(dim, dim, {.bias = o.bias}) {
  check<ValueError>(dim > 0 && heads > 0 && dim % heads == 0,
                    "MultiheadAttention: the number of heads must divide the dimension, got", heads,
                    "heads, dimension", dim);
  check<ValueError>(o.dropout >= 0 && o.dropout <= 1,
                    "MultiheadAttention: dropout must be in [0, 1], got", o.dropout);
  in_proj_weight = empty({3 * dim, dim});
  init::xavier_uniform_(in_proj_weight);
  if (!o.bias) return;
  in_proj_bias = zeros({3 * dim});
  init::zeros_(out_proj.bias);
}

// {q, k, v}. Self-attention needs one product for the three.
std::vector<Tensor> MultiheadAttention::project(const Tensor& query, const Tensor& key,
                                                const Tensor& value) const {
  if (query.same(key) && key.same(value))
    return chunk(linear(query, in_proj_weight, in_proj_bias), 3, -1);
  std::vector<Tensor> weights = chunk(in_proj_weight, 3);
  std::vector<Tensor> biases(3);
  if (in_proj_bias.defined()) biases = chunk(in_proj_bias, 3);
  return {linear(query, weights[0], biases[0]), linear(key, weights[1], biases[1]),
          linear(value, weights[2], biases[2])};
}

// [N,T,E] -> [N,heads,T,E/heads]
Tensor MultiheadAttention::split_heads(const Tensor& x) const {
  return transpose(reshape(x, {x.size(0), x.size(1), num_heads, embed_dim / num_heads}), 1, 2);
}

namespace {
// A bool mask of PyTorch's sense ("hide") as numbers that are added to the scores.
Tensor as_added(const Tensor& mask, DType dtype, Device device) {
  if (mask.is_floating()) return mask.to(dtype);
  check<DTypeError>(mask.dtype() == boolean, "a mask must be bool or a float type, got",
                    mask.dtype());
  return masked_fill(zeros(mask.shape(), {dtype, device}), mask,
                     -std::numeric_limits<double>::infinity());
}
}  // namespace

// Both masks as one that is added, broadcast to [N,heads,T,S]; undefined if there is none.
Tensor MultiheadAttention::full_mask(const AttentionMask& m, int64_t batch, int64_t queries,
                                     int64_t keys, const Tensor& like) const {
  Tensor sum;
  if (m.attn_mask.defined()) {
    const Shape& shape = m.attn_mask.shape();
    check<ShapeError>(
        shape == Shape{queries, keys} || shape == Shape{batch * num_heads, queries, keys},
        "attn_mask must be", Shape{queries, keys}, "or", Shape{batch * num_heads, queries, keys},
        "but is", shape);
    sum = as_added(m.attn_mask, like.dtype(), like.device());
    if (sum.dim() == 3) sum = reshape(sum, {batch, num_heads, queries, keys});
  }
  if (m.key_padding_mask.defined()) {
    const Shape& shape = m.key_padding_mask.shape();
    check<ShapeError>(shape == Shape{batch, keys} || (batch == 1 && shape == Shape{keys}),
                      "key_padding_mask must be", Shape{batch, keys}, "but is", shape);
    Tensor padding =
        reshape(as_added(m.key_padding_mask, like.dtype(), like.device()), {batch, 1, 1, keys});
    sum = sum.defined() ? sum + padding : padding;
  }
  if (m.is_causal && sum.defined())  // the operator takes a mask or causal, not both
    sum = sum + as_added(triu(ones({queries, keys}, {boolean, like.device()}), 1), like.dtype(),
                         like.device());
  return sum;
}

Tensor MultiheadAttention::forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                   const AttentionMask& mask) {
  bool batched = query.dim() == 3;
  check<ShapeError>(batched || query.dim() == 2, "expects queries of rank 3 (batch) or 2, got",
                    query.shape());
  check<ShapeError>(key.dim() == query.dim() && value.dim() == query.dim(),
                    "query, key and value must have the same rank, got", query.shape(), key.shape(),
                    value.shape());
  for (const Tensor* x : {&query, &key, &value})
    check<ShapeError>(x->size(-1) == embed_dim, "expects", embed_dim,
                      "features in the last dimension, got", x->shape());
  check(!(mask.is_causal && mask.attn_mask.defined()),
        "is_causal and attn_mask cannot be given together");

  std::vector<Tensor> qkv = project(query, key, value);
  for (Tensor& x : qkv) {
    if (!batched)
      x = unsqueeze(x, 0);
    else if (!options.batch_first)
      x = transpose(x, 0, 1);  // [T,N,E] -> [N,T,E]
  }
  int64_t batch = qkv[0].size(0), queries = qkv[0].size(1), keys = qkv[1].size(1);
  check<ShapeError>(qkv[1].size(0) == batch && qkv[1].shape() == qkv[2].shape(),
                    "query, key and value do not fit:", query.shape(), key.shape(), value.shape());
  Tensor added = full_mask(mask, batch, queries, keys, qkv[0]);
  Tensor y = scaled_dot_product_attention(
      split_heads(qkv[0]), split_heads(qkv[1]), split_heads(qkv[2]),
      {.mask = added,
       .dropout = training_ ? options.dropout : 0,
       .causal = mask.is_causal && !added.defined()});           // [N,heads,T,E/heads]
  y = reshape(transpose(y, 1, 2), {batch, queries, embed_dim});  // [N,T,E]
  if (!batched)
    y = squeeze(y, 0);
  else if (!options.batch_first)
    y = transpose(y, 0, 1);
  return out_proj(y);
}

// The two products with the scores, and the projections of queries, keys and values; out_proj
// counts itself.
int64_t MultiheadAttention::flops(const std::vector<Tensor>& inputs, const Tensor& output) const {
  const Tensor& query = inputs[0];
  const Tensor& key = inputs.size() > 1 ? inputs[1] : inputs[0];
  int64_t e = embed_dim, queries = query.numel() / e, keys = key.numel() / e;  // over the batch
  int64_t length_at = output.dim() == 2 || !options.batch_first ? 0 : 1;
  return 2 * e * e * (queries + 2 * keys) + 4 * e * queries * key.size(length_at);
}

}  // namespace tg::nn
