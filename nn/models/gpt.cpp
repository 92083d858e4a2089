#include "tapegrad/nn/models/gpt.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tapegrad/autograd/grad_mode.h"
#include "tapegrad/autograd/ops.h"
#include "tapegrad/nn/init.h"

namespace tg::nn {

namespace {

const GPTOptions& checked(const GPTOptions& o) {
  check<ValueError>(o.vocabulary > 0 && o.context > 0 && o.layers > 0 && o.dim > 0,
                    "GPT: vocabulary, context, layers and dim must be at least 1, got",
                    o.vocabulary, o.context, o.layers, o.dim);
  check<ValueError>(o.heads > 0 && o.dim % o.heads == 0, "GPT: heads must divide dim, got", o.heads,
                    "heads, dim", o.dim);
  check<ValueError>(o.dropout >= 0 && o.dropout <= 1, "GPT: dropout must be in [0, 1], got",
                    o.dropout);
  return o;
}

Linear linear_layer(int64_t in, int64_t out, const GPTOptions& o) {
  return {in, out, {.bias = o.bias}};
}

Tensor dropped(const Tensor& x, double p, bool training) {
  return p > 0 && training ? dropout(x, p) : x;
}

}  // namespace

CausalSelfAttention::CausalSelfAttention(const GPTOptions& o)
    : heads(o.heads),
      dropout(o.dropout),
      c_attn(linear_layer(o.dim, 3 * o.dim, o)),
      c_proj(linear_layer(o.dim, o.dim, o)) {}

Tensor CausalSelfAttention::forward(const Tensor& x) {
  int64_t n = x.size(0), t = x.size(1), c = x.size(2);
  std::vector<Tensor> qkv = chunk(c_attn(x), 3, -1);  // each [N,T,C]
  for (Tensor& part : qkv) part = transpose(reshape(part, {n, t, heads, c / heads}), 1, 2);
  Tensor y = scaled_dot_product_attention(
      qkv[0], qkv[1], qkv[2],
      {.dropout = training_ ? dropout : 0, .causal = true});  // [N,heads,T,C/heads]
  y = reshape(transpose(y, 1, 2), {n, t, c});
  return dropped(c_proj(y), dropout, training_);
}

int64_t CausalSelfAttention::flops(const std::vector<Tensor>&, const Tensor& output) const {
  return 4 * output.numel() * output.size(1);  // scores, and values weighted by them
}

FeedForward::FeedForward(const GPTOptions& o)
    : dropout(o.dropout),
      c_fc(linear_layer(o.dim, 4 * o.dim, o)),
      c_proj(linear_layer(4 * o.dim, o.dim, o)) {}

Tensor FeedForward::forward(const Tensor& x) {
  return dropped(c_proj(gelu(c_fc(x), Gelu::tanh)), dropout, training_);
}

GPTBlock::GPTBlock(const GPTOptions& o)
    : ln_1(o.dim, {.bias = o.bias}), attn(o), ln_2(o.dim, {.bias = o.bias}), mlp(o) {}

Tensor GPTBlock::forward(const Tensor& input) {
  Tensor x = input + attn(ln_1(input));
  return x + mlp(ln_2(x));
}

// Weights are normal (0, 0.02); those that end a residual branch are divided by sqrt(2 layers), so
// that the sum over the branches does not grow with the depth.
GPT::GPT(GPTOptions o)
    : options(checked(o)),
      wte(o.vocabulary, o.dim),
      wpe(o.context, o.dim),
      ln_f(o.dim, {.bias = o.bias}),
      lm_head(o.dim, o.vocabulary, {.bias = false}) {
  for (int64_t i = 0; i < o.layers; ++i) blocks.emplace_back(o);
  double branch_std = 0.02 / std::sqrt(2.0 * double(o.layers));
  lm_head.weight = wte.weight;
  init::normal_(wte.weight, 0, 0.02);
  init::normal_(wpe.weight, 0, 0.02);
  for (GPTBlock& block : blocks) {
    init::normal_(block.attn.c_attn.weight, 0, 0.02);
    init::normal_(block.attn.c_proj.weight, 0, branch_std);
    init::normal_(block.mlp.c_fc.weight, 0, 0.02);
    init::normal_(block.mlp.c_proj.weight, 0, branch_std);
    for (Linear* l : {&block.attn.c_attn, &block.attn.c_proj, &block.mlp.c_fc, &block.mlp.c_proj})
      if (l->bias.defined()) init::zeros_(l->bias);
  }
}

Tensor GPT::forward(const Tensor& tokens) {
  check<ShapeError>(tokens.dim() == 2, "expects token numbers [N,T], got", tokens.shape());
  int64_t length = tokens.size(1);
  check<ShapeError>(length <= options.context, "a sequence of", length,
                    "tokens is longer than the context of", options.context);
  Tensor positions = arange(length, {i64, tokens.device()});
  Tensor x = dropped(wte(tokens) + wpe(positions), options.dropout, training_);  // [N,T,dim]
  for (GPTBlock& block : blocks) x = block(x);
  return lm_head(ln_f(x));
}

namespace {

// One number from a row of logits: u in [0, 1) falls into a piece of the cumulated probabilities.
int64_t draw(const std::vector<double>& logits, double u, const GenerateOptions& o) {
  auto size = int64_t(logits.size());
  for (double x : logits)
    check<ValueError>(!std::isnan(x), "GPT: a logit is NaN: no token can be drawn");
  std::vector<int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), int64_t(0));
  // Equal logits by their number, so that the draw is the same everywhere.
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return logits[size_t(a)] > logits[size_t(b)]; });
  if (o.temperature == 0) return order[0];
  int64_t kept = o.top_k > 0 ? std::min(o.top_k, size) : size;
  std::vector<double> weight(size_t(kept), 0.0);
  double total = 0, largest = logits[size_t(order[0])];
  for (int64_t i = 0; i < kept; ++i)
    total += weight[size_t(i)] =
        std::exp((logits[size_t(order[size_t(i)])] - largest) / o.temperature);
  double left = u * total;
  for (int64_t i = 0; i < kept; ++i)
    if ((left -= weight[size_t(i)]) < 0) return order[size_t(i)];
  return order[size_t(kept - 1)];
}

}  // namespace

Tensor GPT::generate(const Tensor& tokens, int64_t count, GenerateOptions o) {
  check<ShapeError>(tokens.dim() == 2 && tokens.size(1) > 0,
                    "GPT: generate needs token numbers [N,T] with T at least 1, got",
                    tokens.shape());
  check<ValueError>(o.temperature >= 0, "GPT: the temperature must not be negative, got",
                    o.temperature);
  check<ValueError>(count >= 0 && o.top_k >= 0,
                    "GPT: the number of tokens and top_k must not be negative, got", count,
                    o.top_k);
  NoGradGuard no_grad;
  EvalGuard eval_mode(*this);
  Tensor all = tokens;
  int64_t n = tokens.size(0);
  for (int64_t i = 0; i < count; ++i) {
    int64_t length = std::min(all.size(1), options.context);
    Tensor logits = (*this)(narrow(all, 1, all.size(1) - length, length));
    Tensor last = select(logits, 1, length - 1);  // [N,vocabulary]
    std::vector<double> u = rand({n}, f32, o.generator).to_vector<double>();
    std::vector<int64_t> next;
    for (int64_t row = 0; row < n; ++row)
      next.push_back(draw(select(last, 0, row).to_vector<double>(), u[size_t(row)], o));
    all = cat({all, tensor(next, {n, 1}).to(all.dtype()).to(all.device())}, 1);
  }
  return all;
}

}  // namespace tg::nn
