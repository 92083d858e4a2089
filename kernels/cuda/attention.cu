// Scaled dot-product attention without a [T,S] matrix in memory; formulas in attention.h. f32 and
// f64.
//
// A warp has one query. It walks over tiles of kTile keys, one key a lane, and keeps the largest
// score, the sum of exponentials and the output so far, rescaled when a larger score turns up. The
// kWarps queries of a block share what is read of k and v. Sums run in one order: the same bits
// every time.
//
// Shared memory: q and y [kWarps, width], k [kTile, width + 1], v [kTile, width], weights.
#include "tapegrad/kernels/attention.h"

#include "tapegrad/kernels/cuda/attention/problem.cuh"

namespace tg::kernels {
namespace {

using namespace gpu::attention;

template <class S>
__global__ void __launch_bounds__(kWarps * 32) attention_kernel(Problem p, S* log_sums) {
  constexpr S kInfinity = std::numeric_limits<S>::infinity();
  const int warp = int(threadIdx.x / 32), lane = int(threadIdx.x % 32);
  const int64_t head = blockIdx.y, first = int64_t(blockIdx.x) * kWarps, query = first + warp;
  const int width = p.width, value_width = p.value_width, pitch = width + 1;

  S* shared = gpu::dynamic_shared<S>();
  S* q = shared;
  S* k = q + kWarps * width;
  S* v = k + kTile * pitch;
  S* y = v + kTile * value_width + warp * value_width;
  S* weights = v + (kTile + kWarps) * value_width + warp * kTile;
  load_rows(q, width, matrix<const S>(p, p.q, head), p.q.row, first, kWarps, p.queries, width);
  for (int e = lane; e < value_width; e += 32) y[e] = 0;

  const void* mask = mask_of<S>(p, head);
  S largest = -kInfinity, sum = 0;
  const int64_t end = p.causal ? min(p.keys, first + kWarps) : p.keys;
  for (int64_t tile = 0; tile < end; tile += kTile) {
    __syncthreads();  // all have finished with the tile before
    load_rows(k, pitch, matrix<const S>(p, p.k, head), p.k.row, tile, kTile, p.keys, width);
    load_rows(v, value_width, matrix<const S>(p, p.v, head), p.v.row, tile, kTile, p.keys,
              value_width);
    __syncthreads();
    const int64_t key = tile + lane;
    const S s = score(p, mask, query, key, dot(q + warp * width, k + lane * pitch, width));
    const S now = gpu::Max()(largest, gpu::warp_total(s, gpu::Max()));
    // With nothing seen so far, -inf - -inf must not become NaN.
    const S shift = now == -kInfinity ? S(0) : now;
    const S rescale = exp(largest - shift), weight = exp(s - shift);
    largest = now;
    sum = sum * rescale + gpu::warp_total(weight, gpu::Add());
    weights[lane] = key < p.keys ? drop(p, head, query, key, weight) : S(0);
    __syncwarp();
    for (int e = lane; e < value_width; e += 32) {
      S out = y[e] * rescale;
      for (int j = 0; j < kTile; ++j) out = fma(weights[j], v[j * value_width + e], out);
      y[e] = out;
    }
    __syncwarp();  // the weights are read
  }
  if (query >= p.queries) return;
  // A query that sees no key: 0, and an infinite log sum that makes its weights 0 in the backward.
  S* out = matrix<S>(p, p.y, head) + query * p.y.row;
  for (int e = lane; e < value_width; e += 32) out[e * p.y.column] = sum == 0 ? S(0) : y[e] / sum;
  if (lane == 0) log_sums[head * p.queries + query] = sum == 0 ? kInfinity : largest + log(sum);
}

__global__ void keep_kernel(Problem p, int64_t heads, bool* keep) {
  for (int64_t i = gpu::first_index(); i < heads * p.queries * p.keys; i += gpu::index_step()) {
    const int64_t key = i % p.keys, query = i / p.keys % p.queries;
    keep[i] = drop(p, i / p.keys / p.queries, query, key, 1.0f) != 0;
  }
}

}  // namespace

void attention(Cuda, View q, View k, View v, View mask, MutView y, MutView log_sums, Attention o) {
  const int64_t heads = heads_of(q);
  Problem p = problem_of(q, k, v, mask, o);
  p.y = operand_of(y);
  if (log_sums.numel == 0) return;
  visit_float(y.dtype, [&]<class S>() {
    const size_t elements = size_t(kWarps * p.width + kTile * (p.width + 1) +
                                   (kTile + kWarps) * p.value_width + kWarps * kTile);
    start_large<attention_kernel<S>>({grid_of(p.queries, heads), kWarps * 32, elements * sizeof(S)},
                                     p, log_sums.as<S>());
  });
}

void attention_dropout_mask(Cuda, MutView keep, Dropout dropout) {
  if (keep.numel == 0) return;
  Problem p{};
  p.queries = keep.size(keep.rank() - 2);
  p.keys = keep.size(keep.rank() - 1);
  const DropoutDraw draw(dropout);
  p.random = dropout.state;
  p.drop_bound = draw.bound();
  p.keep_factor = 1;
  gpu::start<keep_kernel>({gpu::blocks_for_each(keep.numel), gpu::kThreads}, p,
                          keep.numel / (p.queries * p.keys), keep.as<bool>());
}

}  // namespace tg::kernels
