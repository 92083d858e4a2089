// Kernels that compute each row from that row alone: softmax and its like.
//
// A row is read once into shared memory, in the type that is computed in, worked on there, and
// written once; rows that do not fit are read again for each pass. A warp takes a row of up to
// kWarpRow elements, a block of kThreads threads a longer one. Rows may lie apart in memory, and so
// may their elements.
#pragma once
#include "tapegrad/kernels/cuda/block_reduce.cuh"
#include "tapegrad/kernels/cuda/convert.cuh"
#include "tapegrad/kernels/cuda/elementwise.cuh"

namespace tg::gpu {

inline constexpr int kWarpRow = 1024;

// Rows along one dimension of up to three operands. The first gives the shape; of the others only
// the strides count, so they may go on where it ends.
struct RowLoops {
  Strided<2> rows;  // places of the rows' first elements
  int64_t length;
  int64_t step[3];  // along the row, in elements
};

inline RowLoops plan_rows(std::span<const View> operands, int dim) {
  const View& first = operands[0];
  Shape shape = first.shape(), strides[3];
  const bool is_number = first.rank() == 0;  // a row of one element
  if (!is_number) shape.erase(dim);
  RowLoops r{};
  r.length = is_number ? 1 : first.size(dim);
  Layout layouts[3];
  for (size_t k = 0; k < 3; ++k) {
    const View& v = operands[std::min(k, operands.size() - 1)];
    r.step[k] = is_number ? 0 : v.stride(dim);
    strides[k] = v.strides();
    if (!is_number) strides[k].erase(dim);
    layouts[k] = {&shape, &strides[k], int64_t(size_of(v.dtype))};
  }
  r.rows = loops_of<2>(plan_walk(layouts));
  return r;
}

// Elements of a row: in shared memory, or where they came from.
template <class T>
struct Row {
  using S = Computed<T>;
  const T* global;
  int64_t step;
  S* shared;  // null: the row does not fit
  __device__ S operator()(int64_t i) const { return shared ? shared[i] : widen(global[i * step]); }
};

// The threads that work on one row, and their totals.
template <int kThreads>
struct Team {
  __device__ static int rank() { return int(threadIdx.x % kThreads); }
  template <class S, class Join>
  __device__ static S total(S mine, Join join) {
    return block_total<kThreads>(mine, join);
  }
};

// Brings a row to shared memory, each element by the thread that works on it later: nobody waits.
template <int kThreads, class T>
__device__ inline Row<T> take_row(const char* data, int64_t place, int64_t step, int64_t length,
                                  Computed<T>* shared) {
  Row<T> row{reinterpret_cast<const T*>(data + place), step, shared};
  if (shared)
    for (int64_t i = Team<kThreads>::rank(); i < length; i += kThreads)
      shared[i] = widen(row.global[i * step]);
  return row;
}

// f(row number, this team's shared memory) for the rows of a team.
template <int kThreads, class S, class F>
__device__ inline void for_rows(const RowLoops& loops, int64_t shared_elements, F f) {
  const int teams = int(blockDim.x) / kThreads, team = int(threadIdx.x) / kThreads;
  S* shared = shared_elements ? dynamic_shared<S>() + team * shared_elements : nullptr;
  for (int64_t r = int64_t(blockIdx.x) * teams + team; r < loops.rows.numel;
       r += int64_t(gridDim.x) * teams)
    f(r, shared);
}

// start<threads a row>(configuration, elements of shared memory a row) for rows of T, of which
// `operands` at a time shall lie in shared memory.
template <class T, class Start>
void start_rows(const RowLoops& loops, int operands, Start start) {
  using S = Computed<T>;
  const bool warp = loops.length <= kWarpRow;
  const int teams = warp ? 4 : 1;
  const size_t bytes = size_t(loops.length * operands * teams) * sizeof(S);
  const bool fits = bytes <= kSharedByDefault;
  Config c;
  c.block = dim3(warp ? unsigned(32 * teams) : unsigned(kThreads));
  c.grid = dim3(unsigned(std::min<int64_t>((loops.rows.numel + teams - 1) / teams, 132 * 32)));
  c.shared = fits ? bytes : 0;
  const int64_t shared_elements = fits ? loops.length * operands : 0;
  if (warp)
    start.template operator()<32>(c, shared_elements);
  else
    start.template operator()<kThreads>(c, shared_elements);
}

}  // namespace tg::gpu
