#include "tapegrad/autograd/ops/attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops/arithmetic.h"
#include "tapegrad/autograd/ops/comparison.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/indexing.h"
#include "tapegrad/autograd/ops/matmul.h"
#include "tapegrad/autograd/ops/reduction.h"
#include "tapegrad/autograd/ops/softmax.h"
#include "tapegrad/autograd/ops/views.h"
#include "tapegrad/core/philox.h"
#include "tapegrad/core/random.h"
#include "tapegrad/kernels/attention.h"

namespace tg {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

DType wide(DType t) { return t == DType::f64 ? DType::f64 : DType::f32; }

Shape leading(const Tensor& x) {
  Shape shape = x.shape();
  shape.erase(shape.rank() - 1);
  shape.erase(shape.rank() - 1);
  return shape;
}
Shape with(Shape batch, int64_t rows, int64_t columns) {
  batch.push_back(rows);
  batch.push_back(columns);
  return batch;
}
Tensor expand_batch(const Tensor& x, const Shape& batch) {
  const Shape shape = with(batch, x.size(-2), x.size(-1));
  return x.shape() == shape ? x : expand(x, shape);
}

// Kernels ask for values of a row next to each other; heads may come from a transpose.
Tensor rows_dense(const Tensor& x) {
  return x.size(-1) <= 1 || x.stride(-1) == 1 ? x : contiguous(x);
}

// New memory of the given shape whose leading dimensions and rows lie in the order in which those
// of `like` do, so that the transpose that split the heads is undone by a view.
Tensor empty_in_order_of(const Tensor& like, const Shape& shape, DType dtype) {
  const int rank = shape.rank();
  std::array<int, kMaxRank> order;
  for (int d = 0; d < rank; ++d) order[size_t(d)] = d;
  for (int i = 1; i < rank - 1; ++i)  // by falling strides; the last dimension stays the last
    for (int j = i; j > 0; --j) {
      int &outer = order[size_t(j - 1)], &inner = order[size_t(j)];
      const bool matters = shape[outer] > 1 && shape[inner] > 1;
      if (!matters || like.strides()[outer] >= like.strides()[inner]) break;
      std::swap(outer, inner);
    }
  Shape strides = shape;
  int64_t step = 1;
  for (int i = rank - 1; i >= 0; --i) {
    strides[order[size_t(i)]] = step;
    step *= std::max<int64_t>(shape[order[size_t(i)]], 1);
  }
  return empty_strided(shape, strides, {dtype, like.device()});
}

// The formulas of kernels/attention.h from differentiable operators, with matrices [T,S]: for
// gradients of gradients, and for a mask that wants a gradient.
Grads composed_gradients(const Tensor& q_in, const Tensor& k_in, const Tensor& v_in,
                         const Tensor& mask, const Tensor& dy_in, const kernels::Attention& o,
                         Needs needs) {
  const DType type = wide(q_in.dtype());
  const Tensor q = cast(q_in, type), k = cast(k_in, type), v = cast(v_in, type);
  const Tensor dy = cast(dy_in, type);
  Tensor scores = matmul(q, transpose(k, -2, -1)) * o.scale;
  if (o.causal) {
    const Tensor seen = tril(ones({q.size(-2), k.size(-2)}, {boolean, q.device()}));
    scores = masked_fill(scores, logical_not(seen), -kInfinity);
  }
  if (mask.defined()) {
    scores = mask.dtype() == boolean ? masked_fill(scores, logical_not(mask), -kInfinity)
                                     : scores + cast(mask, type);
  }
  Tensor blind, keep;  // queries that see no key; weights that dropout leaves
  {
    NoGradGuard guard;
    blind = eq(amax(scores, {-1}, true), -kInfinity);
    if (o.dropout.probability > 0) {
      keep = empty(scores.shape(), {boolean, q.device()});
      on(q.device(),
         [&](auto device) { kernels::attention_dropout_mask(device, keep.write(), o.dropout); });
    }
  }
  const auto drop = [&](const Tensor& x) {
    if (!keep.defined()) return x;
    return where(keep, x * (1 / (1 - o.dropout.probability)), 0);
  };
  const Tensor p = masked_fill(softmax(masked_fill(scores, blind, 0), -1), blind, 0);
  const Tensor dp = drop(matmul(dy, transpose(v, -2, -1)));
  const Tensor ds = p * (dp - sum(dp * p, -1, true));
  Grads grads(4);
  if (needs[0]) grads[0] = cast(matmul(ds, k) * o.scale, q_in.dtype());
  if (needs[1]) grads[1] = cast(matmul(transpose(ds, -2, -1), q) * o.scale, k_in.dtype());
  if (needs[2]) grads[2] = cast(matmul(transpose(drop(p), -2, -1), dy), v_in.dtype());
  if (needs[3] && mask.defined() && mask.is_floating()) grads[3] = cast(ds, mask.dtype());
  return grads;
}

// f16 and bf16 are computed in f32: copies, made again for the backward.
struct Operands {
  Operands(const Tensor& q_in, const Tensor& k_in, const Tensor& v_in, const Tensor& mask_in)
      : type(wide(q_in.dtype())),
        q(rows_dense(cast(q_in, type))),
        k(rows_dense(cast(k_in, type))),
        v(rows_dense(cast(v_in, type))) {
    if (mask_in.defined()) mask = mask_in.dtype() == boolean ? mask_in : cast(mask_in, type);
  }
  View mask_view() const { return mask.defined() ? mask.read() : View{}; }
  DType type;
  Tensor q, k, v, mask;
};

Grads fused_gradients(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                      const Tensor& y, const Tensor& log_sums, const Tensor& gradient,
                      const kernels::Attention& o, Needs needs) {
  const Operands in(q, k, v, mask);
  const Tensor out = cast(y, in.type), dy = rows_dense(cast(gradient, in.type));
  std::array<Tensor, 3> d;
  const std::array<const Tensor*, 3> like{&in.q, &in.k, &in.v};
  for (size_t i = 0; i < 3; ++i)
    if (needs[i]) d[i] = empty_in_order_of(*like[i], like[i]->shape(), in.type);
  const auto write = [](const Tensor& x) { return x.defined() ? x.write() : MutView{}; };
  on(q.device(), [&](auto device) {
    kernels::attention_backward(
        device,
        {in.q.read(), in.k.read(), in.v.read(), in.mask_view(), out.read(), log_sums.read()},
        dy.read(), write(d[0]), write(d[1]), write(d[2]), o);
  });
  Grads grads(4);
  for (size_t i = 0; i < 3; ++i)
    if (d[i].defined()) grads[i] = cast(d[i], q.dtype());
  return grads;
}

void check_operands(const Op& op, const Tensor& q, const Tensor& k, const Tensor& v,
                    const AttentionOptions& o) {
  op.same_device(q, k);
  op.same_device(q, v);
  check<DTypeError>(q.is_floating() && q.dtype() == k.dtype() && q.dtype() == v.dtype(),
                    "q, k and v must share one floating point dtype, got", q.dtype(), k.dtype(),
                    v.dtype());
  check<ShapeError>(q.dim() >= 2 && k.dim() >= 2 && v.dim() >= 2,
                    "q, k and v need at least two dimensions, got", q.shape(), k.shape(),
                    v.shape());
  check<ShapeError>(q.size(-1) == k.size(-1), "q and k differ in their last size:", q.shape(),
                    k.shape());
  check<ShapeError>(k.size(-2) == v.size(-2), "k and v differ in their number of keys:", k.shape(),
                    v.shape());
  check<ValueError>(o.dropout >= 0 && o.dropout <= 1, "dropout must be a probability, got",
                    o.dropout);
  check<ValueError>(!(o.causal && o.mask.defined()),
                    "causal does not go together with a mask; put the causal part into the mask");
  if (!o.mask.defined()) return;
  op.same_device(q, o.mask);
  check<DTypeError>(o.mask.dtype() == boolean || o.mask.is_floating(),
                    "mask must be bool (true takes part) or floating point (added), got",
                    o.mask.dtype());
}

}  // namespace

// y = dropout(softmax(q k^T scale + mask)) v; the backward stands in kernels/attention.h
Tensor scaled_dot_product_attention(const Tensor& q_in, const Tensor& k_in, const Tensor& v_in,
                                    const AttentionOptions& options) {
  Op op("scaled_dot_product_attention", Cast::low);
  Tensor q = op.in(q_in), k = op.in(k_in), v = op.in(v_in), mask = options.mask;
  check_operands(op, q, k, v, options);
  const Shape batch = broadcast_shapes(broadcast_shapes(leading(q), leading(k)), leading(v));
  q = expand_batch(q, batch);
  k = expand_batch(k, batch);
  v = expand_batch(v, batch);
  const int64_t queries = q.size(-2), keys = k.size(-2);
  if (mask.defined()) {
    const Shape full = with(batch, queries, keys);
    check<ShapeError>(broadcast_shapes(mask.shape(), full) == full, "mask", mask.shape(),
                      "does not broadcast to", full);
    mask = expand(mask, full);
  }
  kernels::Attention o{options.scale.value_or(1 / std::sqrt(double(q.size(-1)))),
                       options.causal,
                       {options.dropout, {}}};
  if (options.dropout > 0) {
    const int64_t weights = kernels::attention_index(batch.numel(), 0, 0, queries, keys);
    o.dropout.state = default_generator(q.device()).reserve(blocks_for(weights, 4));
  }

  const Operands in(q.detach(), k.detach(), v.detach(), mask.defined() ? mask.detach() : Tensor());
  Tensor y = empty_in_order_of(in.q, with(batch, queries, v.size(-1)), in.type);
  Shape rows = batch;
  rows.push_back(queries);
  Tensor log_sums = empty(rows, {in.type, q.device()});
  on(q.device(), [&](auto device) {
    kernels::attention(device, in.q.read(), in.k.read(), in.v.read(), in.mask_view(), y.write(),
                       log_sums.write(), o);
  });
  if (y.dtype() != q.dtype()) y = cast(y, q.dtype());
  return op.record(y, {q, k, v, mask},
                   [q = Saved::input(q), k = Saved::input(k), v = Saved::input(v),
                    mask = Saved::input(mask), y = Saved::output(y),
                    log_sums = Saved::plain(log_sums), o](const Tensor& dy, Needs needs) -> Grads {
                     if (grad_enabled() || (needs[3] && mask.defined()))
                       return composed_gradients(q.get(), k.get(), v.get(), mask.get(), dy, o,
                                                 needs);
                     return fused_gradients(q.get(), k.get(), v.get(), mask.get(), y.get(),
                                            log_sums.get(), dy, o, needs);
                   });
}

}  // namespace tg
