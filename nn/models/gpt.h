// A decoder-only transformer: layer norms in front (pre-norm), learned positions, GELU (tanh
// form), and the embedding's weight used again for the output.
#pragma once
#include "tapegrad/nn/activations.h"
#include "tapegrad/nn/embedding.h"
#include "tapegrad/nn/linear.h"
#include "tapegrad/nn/normalization.h"

namespace tg {
class Generator;
}

namespace tg::nn {

struct GPTOptions {
  int64_t vocabulary = 256;
  int64_t context = 128;  // longest sequence
  int64_t layers = 4;
  int64_t heads = 4;  // divides dim
  int64_t dim = 256;
  double dropout = 0;  // on embeddings, attention weights and the two branches
  bool bias = true;    // in linear layers and layer norms
};

struct CausalSelfAttention : Module {
  int64_t heads;
  double dropout;
  Linear c_attn, c_proj;
  explicit CausalSelfAttention(const GPTOptions& options);
  TG_MODULE(c_attn, c_proj)
  Tensor forward(const Tensor& x);  // [N,T,dim] -> [N,T,dim]
  int64_t flops(const std::vector<Tensor>& inputs, const Tensor& output) const override;
};

struct FeedForward : Module {
  double dropout;
  Linear c_fc, c_proj;  // dim -> 4 dim -> dim
  explicit FeedForward(const GPTOptions& options);
  TG_MODULE(c_fc, c_proj)
  Tensor forward(const Tensor& x);
};

struct GPTBlock : Module {
  LayerNorm ln_1;
  CausalSelfAttention attn;
  LayerNorm ln_2;
  FeedForward mlp;
  explicit GPTBlock(const GPTOptions& options);
  TG_MODULE(ln_1, attn, ln_2, mlp)
  Tensor forward(const Tensor& x);
};

struct GenerateOptions {
  double temperature = 1;  // 0: always the likeliest
  int64_t top_k = 0;       // choose among the k likeliest; 0: among all
  Generator* generator = nullptr;
};

struct GPT : Module {
  GPTOptions options;
  Embedding wte, wpe;
  std::vector<GPTBlock> blocks;
  LayerNorm ln_f;
  Linear lm_head;  // its weight is wte's
  explicit GPT(GPTOptions options = {});
  TG_MODULE(wte, wpe, blocks, ln_f, lm_head)
  // Token numbers [N,T], T <= context -> logits of the next token [N,T,vocabulary].
  Tensor forward(const Tensor& tokens);
  // tokens [N,T] -> [N,T + count]: appends tokens drawn from the model's predictions, in eval mode
  // and without recording. What is older than `context` is not looked at.
  Tensor generate(const Tensor& tokens, int64_t count, GenerateOptions options = {});
  GPT remake() const { return GPT(options); }
};

}  // namespace tg::nn
