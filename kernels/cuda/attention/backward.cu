// The derivatives of attention; formulas in attention.h. Weights are computed again from the scores
// and the saved log sums:
//
//   delta = sum of dy y        p = exp(s - l)        ds = p (d(dy v^T) - delta)
//
// Two kernels, each deterministic: a warp has one query and walks over the keys for dq, or one key
// and walks over the queries for dk and dv. The price of no atomic additions is that scores are
// computed twice.
#include "tapegrad/core/allocator.h"
#include "tapegrad/kernels/cuda/attention/problem.cuh"

namespace tg::kernels {
namespace {

using namespace gpu::attention;
using Operand = gpu::attention::Operand;

struct Gradients {
  Operand y, dy, dq, dk, dv;
};

// delta [heads, queries]; a warp a query
template <class S>
__global__ void delta_kernel(Problem p, Gradients g, int64_t rows, S* delta) {
  const int lane = int(threadIdx.x % 32);
  for (int64_t i = gpu::first_index() / 32; i < rows; i += gpu::index_step() / 32) {
    const int64_t head = i / p.queries, query = i % p.queries;
    const S* y = matrix<const S>(p, g.y, head) + query * g.y.row;
    const S* dy = matrix<const S>(p, g.dy, head) + query * g.dy.row;
    S sum = 0;
    for (int e = lane; e < p.value_width; e += 32) sum += y[e * g.y.column] * dy[e * g.dy.column];
    sum = gpu::warp_total(sum, gpu::Add());
    if (lane == 0) delta[i] = sum;
  }
}

// The weight of a query and a key, and the derivative of the loss by its score (before the scale).
template <class S>
struct Pair {
  S weight, slope;  // weight: after dropout
};
template <class S>
__device__ inline Pair<S> pair_of(const Problem& p, const void* mask, int64_t head, int64_t query,
                                  int64_t key, S product, S dy_v, S log_sum, S delta) {
  const S s = score(p, mask, query, key, product);
  if (s == -std::numeric_limits<S>::infinity()) return {0, 0};
  const S weight = exp(s - log_sum);
  return {drop(p, head, query, key, weight),
          weight * (drop(p, head, query, key, dy_v) - delta) * S(p.scale)};
}

template <class S>
__global__ void __launch_bounds__(kWarps * 32)
    query_gradient_kernel(Problem p, Gradients g, const S* log_sums, const S* delta) {
  const int warp = int(threadIdx.x / 32), lane = int(threadIdx.x % 32);
  const int64_t head = blockIdx.y, first = int64_t(blockIdx.x) * kWarps, query = first + warp;
  const int width = p.width, value_width = p.value_width;
  const int k_pitch = width + 1, v_pitch = value_width + 1;

  S* q = gpu::dynamic_shared<S>();
  S* dy = q + kWarps * width;
  S* k = dy + kWarps * value_width;
  S* v = k + kTile * k_pitch;
  S* dq = v + kTile * v_pitch + warp * width;
  S* slopes = v + kTile * v_pitch + kWarps * width + warp * kTile;
  load_rows(q, width, matrix<const S>(p, p.q, head), p.q.row, first, kWarps, p.queries, width);
  load_rows(dy, value_width, matrix<const S>(p, g.dy, head), g.dy.row, first, kWarps, p.queries,
            value_width);
  for (int e = lane; e < width; e += 32) dq[e] = 0;
  const bool real = query < p.queries;
  const S log_sum = real ? log_sums[head * p.queries + query] : S(0);
  const S mine = real ? delta[head * p.queries + query] : S(0);

  const void* mask = mask_of<S>(p, head);
  const int64_t end = p.causal ? min(p.keys, first + kWarps) : p.keys;
  for (int64_t tile = 0; tile < end; tile += kTile) {
    __syncthreads();
    load_rows(k, k_pitch, matrix<const S>(p, p.k, head), p.k.row, tile, kTile, p.keys, width);
    load_rows(v, v_pitch, matrix<const S>(p, p.v, head), p.v.row, tile, kTile, p.keys, value_width);
    __syncthreads();
    slopes[lane] =
        pair_of(p, mask, head, query, tile + lane, dot(q + warp * width, k + lane * k_pitch, width),
                dot(dy + warp * value_width, v + lane * v_pitch, value_width), log_sum, mine)
            .slope;
    __syncwarp();
    for (int e = lane; e < width; e += 32) {
      S sum = dq[e];
      for (int j = 0; j < kTile; ++j) sum = fma(slopes[j], k[j * k_pitch + e], sum);
      dq[e] = sum;
    }
    __syncwarp();
  }
  if (!real) return;
  S* out = matrix<S>(p, g.dq, head) + query * g.dq.row;
  for (int e = lane; e < width; e += 32) out[e * g.dq.column] = dq[e];
}

template <class S>
__global__ void __launch_bounds__(kWarps * 32)
    key_gradient_kernel(Problem p, Gradients g, const S* log_sums, const S* delta) {
  const int warp = int(threadIdx.x / 32), lane = int(threadIdx.x % 32);
  const int64_t head = blockIdx.y, first = int64_t(blockIdx.x) * kWarps, key = first + warp;
  const int width = p.width, value_width = p.value_width;
  const int q_pitch = width + 1, dy_pitch = value_width + 1;

  S* k = gpu::dynamic_shared<S>();
  S* v = k + kWarps * width;
  S* q = v + kWarps * value_width;
  S* dy = q + kTile * q_pitch;
  S* dk = dy + kTile * dy_pitch + warp * width;
  S* dv = dy + kTile * dy_pitch + kWarps * width + warp * value_width;
  S* slopes = dy + kTile * dy_pitch + kWarps * (width + value_width) + warp * 2 * kTile;
  S* weights = slopes + kTile;
  load_rows(k, width, matrix<const S>(p, p.k, head), p.k.row, first, kWarps, p.keys, width);
  load_rows(v, value_width, matrix<const S>(p, p.v, head), p.v.row, first, kWarps, p.keys,
            value_width);
  for (int e = lane; e < width; e += 32) dk[e] = 0;
  for (int e = lane; e < value_width; e += 32) dv[e] = 0;

  const void* mask = mask_of<S>(p, head);
  // Under a causal mask, queries before the block's first key see none of its keys.
  const int64_t start = p.causal ? first / kTile * kTile : 0;
  for (int64_t tile = start; tile < p.queries; tile += kTile) {
    __syncthreads();
    load_rows(q, q_pitch, matrix<const S>(p, p.q, head), p.q.row, tile, kTile, p.queries, width);
    load_rows(dy, dy_pitch, matrix<const S>(p, g.dy, head), g.dy.row, tile, kTile, p.queries,
              value_width);
    __syncthreads();
    const int64_t query = tile + lane, at = head * p.queries + query;
    const bool real = query < p.queries;
    const Pair<S> pair =
        pair_of(p, mask, head, query, key, dot(k + warp * width, q + lane * q_pitch, width),
                dot(v + warp * value_width, dy + lane * dy_pitch, value_width),
                real ? log_sums[at] : S(0), real ? delta[at] : S(0));
    slopes[lane] = pair.slope;
    weights[lane] = pair.weight;
    __syncwarp();
    for (int e = lane; e < width; e += 32) {
      S sum = dk[e];
      for (int j = 0; j < kTile; ++j) sum = fma(slopes[j], q[j * q_pitch + e], sum);
      dk[e] = sum;
    }
    for (int e = lane; e < value_width; e += 32) {
      S sum = dv[e];
      for (int j = 0; j < kTile; ++j) sum = fma(weights[j], dy[j * dy_pitch + e], sum);
      dv[e] = sum;
    }
    __syncwarp();
  }
  if (key >= p.keys) return;
  if (g.dk.data) {
    S* out = matrix<S>(p, g.dk, head) + key * g.dk.row;
    for (int e = lane; e < width; e += 32) out[e * g.dk.column] = dk[e];
  }
  if (g.dv.data) {
    S* out = matrix<S>(p, g.dv, head) + key * g.dv.row;
    for (int e = lane; e < value_width; e += 32) out[e * g.dv.column] = dv[e];
  }
}

}  // namespace

void attention_backward(Cuda, const AttentionSaved& saved, View dy, MutView dq, MutView dk,
                        MutView dv, Attention o) {
  const int64_t heads = heads_of(saved.q);
  const Problem p = problem_of(saved.q, saved.k, saved.v, saved.mask, o);
  const Gradients g{operand_of(saved.y), operand_of(dy), operand_of(dq), operand_of(dk),
                    operand_of(dv)};
  if (heads == 0) return;
  visit_float(dy.dtype, [&]<class S>() {
    const int64_t rows = heads * p.queries;
    Workspace workspace(size_t(rows) * sizeof(S), cuda::current_device());
    S* delta = workspace.as<S>();
    const S* log_sums = saved.log_sums.as<S>();
    if (rows > 0)
      gpu::start<delta_kernel<S>>({gpu::blocks_for_each(rows * 32), gpu::kThreads}, p, g, rows,
                                  delta);
    const int pitches = kTile * (p.width + 1 + p.value_width + 1);
    const size_t of_query =
        size_t(pitches + kWarps * (2 * p.width + p.value_width + kTile)) * sizeof(S);
    const size_t of_key =
        size_t(pitches + kWarps * 2 * (p.width + p.value_width + kTile)) * sizeof(S);
    if (dq.data && dq.numel > 0)
      start_large<query_gradient_kernel<S>>({grid_of(p.queries, heads), kWarps * 32, of_query}, p,
                                            g, log_sums, delta);
    if ((dk.data || dv.data) && p.keys > 0)
      start_large<key_gradient_kernel<S>>({grid_of(p.keys, heads), kWarps * 32, of_key}, p, g,
                                          log_sums, delta);
  });
}

}  // namespace tg::kernels
