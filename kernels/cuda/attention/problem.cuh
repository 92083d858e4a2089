// What the kernels of attention share: where the matrices of a head lie, what a query sees of a
// key, and which weights dropout leaves. Private to kernels/cuda.
#pragma once
#include <limits>

#include "tapegrad/kernels/attention.h"
#include "tapegrad/kernels/cuda/block_reduce.cuh"
#include "tapegrad/kernels/cuda/convert.cuh"
#include "tapegrad/kernels/cuda/start.cuh"
#include "tapegrad/kernels/dispatch.h"
#include "tapegrad/kernels/dropout_draw.h"

namespace tg::gpu::attention {

inline constexpr int kWarps = 4;  // of a block, each with a row of its own
inline constexpr int kTile = 32;  // rows of the other side, one a lane

// One operand [heads.., rows, width]: strides of the heads and of the rows, in elements.
struct Operand {
  const void* data = nullptr;
  int64_t head_stride[kMaxRank] = {};
  int64_t row = 0, column = 0;
};

inline Operand operand_of(View v) {
  Operand o{v.data, {}, 0, 0};
  if (!v.data) return o;
  const int heads = v.rank() - 2;
  for (int d = 0; d < heads; ++d) o.head_stride[d] = v.stride(d);
  o.row = v.stride(heads);
  o.column = v.stride(heads + 1);
  return o;
}

struct Problem {
  int64_t queries, keys;
  int width, value_width;
  int rank;  // of the heads
  int64_t head_size[kMaxRank];
  Operand q, k, v, mask, y;
  bool mask_is_bool, causal;
  double scale;
  RandomState random;
  uint32_t drop_bound;  // 0: no dropout
  double keep_factor;
};

// Matrices: the product of the leading sizes.
inline int64_t heads_of(View q) {
  int64_t n = 1;
  for (int d = 0; d < q.rank() - 2; ++d) n *= q.size(d);
  return n;
}

inline Problem problem_of(View q, View k, View v, View mask, const kernels::Attention& o) {
  Problem p{};
  const int heads = q.rank() - 2;
  p.queries = q.size(heads);
  p.keys = k.size(heads);
  p.width = int(q.size(heads + 1));
  p.value_width = int(v.size(heads + 1));
  p.rank = heads;
  for (int d = 0; d < heads; ++d) p.head_size[d] = q.size(d);
  p.q = operand_of(q);
  p.k = operand_of(k);
  p.v = operand_of(v);
  p.mask = operand_of(mask);
  p.mask_is_bool = mask.data && mask.dtype == DType::boolean;
  p.causal = o.causal;
  p.scale = o.scale;
  const kernels::DropoutDraw draw(o.dropout);
  p.random = o.dropout.state;
  p.drop_bound = draw.bound();
  p.keep_factor = draw.factor();
  return p;
}

// The first element of a head's matrix.
template <class T>
__device__ inline T* matrix(const Problem& p, const Operand& o, int64_t head) {
  int64_t offset = 0;
  for (int d = p.rank - 1; d >= 0; --d) {
    offset += head % p.head_size[d] * o.head_stride[d];
    head /= p.head_size[d];
  }
  return static_cast<T*>(const_cast<void*>(o.data)) + offset;
}

// The mask of a head: bool or S, null if there is none. Found once for all of its scores, because
// it takes divisions.
template <class S>
__device__ inline const void* mask_of(const Problem& p, int64_t head) {
  if (!p.mask.data) return nullptr;
  if (p.mask_is_bool) return matrix<const bool>(p, p.mask, head);
  return matrix<const S>(p, p.mask, head);
}

// The score of a query and a key by their product; -inf where the query does not see the key.
template <class S>
__device__ inline S score(const Problem& p, const void* mask, int64_t query, int64_t key,
                          S product) {
  constexpr S kHidden = -std::numeric_limits<S>::infinity();
  if (query >= p.queries || key >= p.keys || (p.causal && key > query)) return kHidden;
  const S s = product * S(p.scale);
  if (!mask) return s;
  const int64_t at = query * p.mask.row + key * p.mask.column;
  if (p.mask_is_bool) return static_cast<const bool*>(mask)[at] ? s : kHidden;
  return s + static_cast<const S*>(mask)[at];
}

// What dropout makes of a weight: 0, or it divided by the probability to stay.
template <class S>
__device__ inline S drop(const Problem& p, int64_t head, int64_t query, int64_t key, S weight) {
  if (p.drop_bound == 0) return weight;
  const int64_t index = kernels::attention_index(head, query, key, p.queries, p.keys);
  const RandomBlock block = random_block(p.random, uint64_t(index) / 4);
  // By comparisons: an array that is indexed at run time would lie in local memory.
  const int at = int(index % 4);
  const uint32_t word = at < 2 ? (at == 0 ? block.word[0] : block.word[1])
                               : (at == 2 ? block.word[2] : block.word[3]);
  return word >> 8 >= p.drop_bound ? weight * S(p.keep_factor) : S(0);
}

// `rows` rows from `first` on into shared memory, `pitch` apart; zeros past the last row.
template <class S>
__device__ inline void load_rows(S* to, int pitch, const S* from, int64_t row_stride, int64_t first,
                                 int rows, int64_t count, int width) {
  for (int i = int(threadIdx.x); i < rows * width; i += kWarps * 32) {
    const int r = i / width, c = i % width;
    to[r * pitch + c] = first + r < count ? from[(first + r) * row_stride + c] : S(0);
  }
}

template <class S>
__device__ inline S dot(const S* a, const S* b, int n) {
  S sum = 0;
  for (int i = 0; i < n; ++i) sum = fma(a[i], b[i], sum);
  return sum;
}

// Starts a kernel that may need more shared memory than kSharedByDefault.
template <auto kKernel, class... Args>
void start_large(Config c, Args&&... args) {
  if (c.shared > kSharedByDefault)
    cuda::check(cudaFuncSetAttribute(reinterpret_cast<const void*>(kKernel),
                                     cudaFuncAttributeMaxDynamicSharedMemorySize, int(c.shared)),
                "attention: shared memory for heads of this size");
  start<kKernel>(c, std::forward<Args>(args)...);
}

inline dim3 grid_of(int64_t rows, int64_t heads) {
  check<ShapeError>(heads <= 65535, "attention on CUDA takes 65535 heads at most, got", heads);
  return dim3(unsigned((rows + kWarps - 1) / kWarps), unsigned(heads));
}

}  // namespace tg::gpu::attention
