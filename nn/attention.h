// Attention over several heads.
#pragma once
#include "tapegrad/nn/linear.h"
#include "tapegrad/nn/module.h"

namespace tg::nn {

struct MultiheadAttentionOptions {
  double dropout = 0;  // on the attention weights, in training
  bool bias = true;
  bool batch_first = false;  // [N,T,E] instead of PyTorch's default [T,N,E]
};

// As PyTorch has it, a true element of a mask here means "not to be looked at"; a float mask is
// added to the scores. (The operator scaled_dot_product_attention has true for "takes part".)
struct AttentionMask {
  Tensor attn_mask = {};         // [T,S] or [N*heads,T,S], bool or float
  Tensor key_padding_mask = {};  // [N,S] ([S] without a batch), bool or float
  bool is_causal = false;        // query i sees keys 0..i; not together with attn_mask
};

// softmax(q k^T / sqrt(E / heads)) v per head, between two linear layers. query [T,N,E], key and
// value [S,N,E] -> [T,N,E]; [T,E] without a batch. in_proj_weight [3E,E] (queries, keys, values)
// starts Xavier-uniform, in_proj_bias and out_proj.bias 0. The weights are not returned: use
// PyTorch's need_weights = false to compare. ValueError unless heads divides the dimension.
struct MultiheadAttention : Module {
  int64_t embed_dim, num_heads;
  MultiheadAttentionOptions options;
  Parameter in_proj_weight, in_proj_bias;
  Linear out_proj;
  MultiheadAttention(int64_t embed_dim, int64_t num_heads, MultiheadAttentionOptions options = {});
  TG_MODULE(in_proj_weight, in_proj_bias, out_proj)
  Tensor forward(const Tensor& query, const Tensor& key, const Tensor& value,
                 const AttentionMask& mask = {});
  Tensor forward(const Tensor& x, const AttentionMask& mask = {}) { return forward(x, x, x, mask); }
  MultiheadAttention remake() const { return {embed_dim, num_heads, options}; }
  int64_t flops(const std::vector<Tensor>& inputs, const Tensor& output) const override;

 private:
  std::vector<Tensor> project(const Tensor& query, const Tensor& key, const Tensor& value) const;
  Tensor split_heads(const Tensor& x) const;
  Tensor full_mask(const AttentionMask& mask, int64_t batch, int64_t queries, int64_t keys,
                   const Tensor& like) const;
};

}  // namespace tg::nn
