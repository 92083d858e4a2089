// Reductions over dimensions, and scans.
//
//   y[o] = join over r of map(x[o, r]), divided by a number
//
// How the work is cut depends on the shape alone, so the bits are the same every time. The elements
// that one result is made of are cut into slices of kSlice; a group of threads adds up a slice in
// the type that is computed in, each thread at most kSlice / 32 elements, and the totals of slices
// are joined in f64 (integers: i64) in their order, so long sums are right.
//
// Memory policy: every element is read once. Threads of a group read neighbours if the reduced
// dimension is the innermost one in memory; if it is not, each thread takes a result of its own,
// and neighbouring threads neighbouring results.
#include "tapegrad/kernels/reduce.h"

#include "tapegrad/core/allocator.h"
#include "tapegrad/kernels/cuda/convert_any.cuh"
#include "tapegrad/kernels/cuda/rows.cuh"

namespace tg::kernels {
namespace {

constexpr int64_t kSlice = 8192;  // elements that are added up before f64 takes over
constexpr int64_t kColumn = 256;  // the same, for a single thread

// Every rule has a value to start from, what it makes of an element, and how two totals are joined.
struct OfElements {
  template <class S>
  __device__ static S map(S x) {
    return x;
  }
};
struct Sum : OfElements {
  template <class S>
  __device__ static S start() {
    return S(0);
  }
  template <class S>
  __device__ S operator()(S a, S b) const {
    return a + b;
  }
  __device__ int64_t operator()(int64_t a, int64_t b) const {  // wraps around
    return int64_t(uint64_t(a) + uint64_t(b));
  }
};
struct SumOfSquares : Sum {
  template <class S>
  __device__ static S map(S x) {
    return x * x;
  }
  __device__ static int64_t map(int64_t x) { return int64_t(uint64_t(x) * uint64_t(x)); }
};
struct SumOfSizes : Sum {
  template <class S>
  __device__ static S map(S x) {
    return x < S(0) ? -x : x;
  }
};
struct Product : OfElements {
  template <class S>
  __device__ static S start() {
    return S(1);
  }
  template <class S>
  __device__ S operator()(S a, S b) const {
    return a * b;
  }
  __device__ int64_t operator()(int64_t a, int64_t b) const {
    return int64_t(uint64_t(a) * uint64_t(b));
  }
};
struct Largest : OfElements {
  template <class S>
  __device__ static S start() {
    if constexpr (std::is_floating_point_v<S>) return -std::numeric_limits<S>::infinity();
    return std::numeric_limits<S>::min();
  }
  template <class S>
  __device__ S operator()(S a, S b) const {  // NaN if either is
    return a != a || b <= a ? a : b;
  }
};
struct Smallest : OfElements {
  template <class S>
  __device__ static S start() {
    if constexpr (std::is_floating_point_v<S>) return std::numeric_limits<S>::infinity();
    return std::numeric_limits<S>::max();
  }
  template <class S>
  __device__ S operator()(S a, S b) const {
    return a != a || b >= a ? a : b;
  }
};

// One operand seen as [kept..., gone...]: loops that stay and loops that go.
struct Split {
  gpu::Strided<1> kept;  // operand 0: y, operand 1: x
  gpu::Strided<0> gone;  // x alone
  int64_t slice, slices;
};

template <class S>
__device__ S load_element(DType t, const char* p) {
  if constexpr (std::is_same_v<S, int64_t>) return gpu::Integers::load(t, p);
  return gpu::load_as<S>(t, p);
}

// What a slice of result o adds up to, each thread taking elements `first`, `first + step`, ...
template <class Rule, class S>
__device__ S slice_total(const Split& split, const char* x, DType t, int64_t o, int64_t s,
                         int64_t first, int64_t step) {
  int64_t place[2];
  gpu::find_places(split.kept, o, place);
  const int64_t end = min((s + 1) * split.slice, split.gone.numel);
  S total = Rule::template start<S>();
  for (int64_t r = s * split.slice + first; r < end; r += step) {
    int64_t inner[1];
    gpu::find_places(split.gone, r, inner);
    total = Rule()(total, Rule::map(load_element<S>(t, x + place[1] + inner[0])));
  }
  return total;
}

// totals [results, slices]; a warp each
template <class Rule, class S, class Wide>
__global__ void row_slices_kernel(Split split, const char* x, DType t, Wide* totals) {
  const int64_t all = split.kept.numel * split.slices;
  const int lane = int(threadIdx.x % 32);
  for (int64_t i = gpu::first_index() / 32; i < all; i += gpu::index_step() / 32) {
    S total = slice_total<Rule, S>(split, x, t, i / split.slices, i % split.slices, lane, 32);
    total = gpu::warp_total(total, Rule());
    if (lane == 0) totals[i] = Wide(total);
  }
}

// The same, a thread each; results next to each other are neighbours in memory.
template <class Rule, class S, class Wide>
__global__ void column_slices_kernel(Split split, const char* x, DType t, Wide* totals) {
  const int64_t results = split.kept.numel, all = results * split.slices;
  for (int64_t i = gpu::first_index(); i < all; i += gpu::index_step()) {
    const int64_t o = i % results, s = i / results;
    totals[o * split.slices + s] = Wide(slice_total<Rule, S>(split, x, t, o, s, 0, 1));
  }
}

// y[o] = the slices of o joined in order, floats divided; a thread each
template <class Rule, class Wide>
__global__ void finish_kernel(Split split, const Wide* totals, double divisor, char* y, DType t) {
  for (int64_t o = gpu::first_index(); o < split.kept.numel; o += gpu::index_step()) {
    int64_t place[2];
    gpu::find_places(split.kept, o, place);
    Wide total = Rule::template start<Wide>();
    for (int64_t s = 0; s < split.slices; ++s) total = Rule()(total, totals[o * split.slices + s]);
    if constexpr (std::is_same_v<Wide, double>) total /= divisor;
    gpu::store_wide(t, y + place[0], total);
  }
}

struct Plan {
  Split split;
  bool columns;
};

Plan plan_reduction(View x, MutView y) {
  Shape kept, gone, y_strides, x_kept, x_gone;
  int64_t innermost = 0, smallest = 0;
  for (int d = 0; d < x.rank(); ++d) {
    const bool goes = y.size(d) == 1 && x.size(d) != 1;
    (goes ? gone : kept).push_back(x.size(d));
    (goes ? x_gone : x_kept).push_back(x.stride(d));
    if (!goes) y_strides.push_back(y.stride(d));
    if (x.size(d) == 1) continue;
    if (smallest == 0 || x.stride(d) < smallest) {
      smallest = std::max<int64_t>(x.stride(d), 1);
      innermost = goes;
    }
  }
  Plan p{};
  const int64_t bytes = int64_t(size_of(x.dtype));
  const Layout outer[] = {{&kept, &y_strides, int64_t(size_of(y.dtype))}, {&kept, &x_kept, bytes}};
  const Layout inner[] = {{&gone, &x_gone, bytes}};
  p.split.kept = gpu::loops_of<1>(plan_walk(outer));
  p.split.gone = gpu::loops_of<0>(plan_walk(inner));
  p.columns = !innermost;
  p.split.slice = p.columns ? kColumn : kSlice;
  p.split.slices = std::max<int64_t>(1, (p.split.gone.numel + p.split.slice - 1) / p.split.slice);
  return p;
}

template <class Rule, class S, class Wide>
void run_reduction(View x, MutView y, double divisor) {
  if (y.numel == 0) return;
  const Plan p = plan_reduction(x, y);
  const int64_t totals = p.split.kept.numel * p.split.slices;
  Workspace workspace(size_t(totals) * sizeof(Wide), cuda::current_device());
  Wide* wide = workspace.as<Wide>();
  if (p.columns)
    gpu::start<column_slices_kernel<Rule, S, Wide>>({gpu::blocks_for_each(totals), gpu::kThreads},
                                                    p.split, x.as<char>(), x.dtype, wide);
  else
    gpu::start<row_slices_kernel<Rule, S, Wide>>({gpu::blocks_for_each(totals * 32), gpu::kThreads},
                                                 p.split, x.as<char>(), x.dtype, wide);
  gpu::start<finish_kernel<Rule, Wide>>({gpu::blocks_for_each(y.numel), gpu::kThreads}, p.split,
                                        wide, divisor, y.as<char>(), y.dtype);
}

template <class Rule>
void run_rule(View x, MutView y, double divisor) {
  if (x.dtype == DType::f64) return run_reduction<Rule, double, double>(x, y, divisor);
  if (is_floating(x.dtype)) return run_reduction<Rule, float, double>(x, y, divisor);
  run_reduction<Rule, int64_t, int64_t>(x, y, divisor);
}

struct First {
  __device__ int64_t operator()(int64_t a, int64_t b) const { return a < b ? a : b; }
};

// index = the first place where x equals value, or both are NaN; a warp for each row
template <class S>
__global__ void find_first_kernel(gpu::RowLoops loops, const char* x, DType t, const char* value,
                                  char* index) {
  const int lane = int(threadIdx.x % 32);
  const int64_t n = loops.length, step = loops.step[0] * int64_t(size_of(t));
  for (int64_t i = gpu::first_index() / 32; i < loops.rows.numel; i += gpu::index_step() / 32) {
    int64_t place[3];
    gpu::find_places(loops.rows, i, place);
    const S wanted = load_element<S>(t, value + place[1]);
    int64_t first = n;
    for (int64_t j = lane; j < n && first == n; j += 32) {
      const S v = load_element<S>(t, x + place[0] + j * step);
      if (v == wanted || (v != v && wanted != wanted)) first = j;
    }
    first = gpu::warp_total(first, First());
    if (lane == 0) *reinterpret_cast<int64_t*>(index + place[2]) = first;
  }
}

// y[j] = x[0] + ... + x[j]; a thread for each row
template <class S, class Wide>
__global__ void cumsum_kernel(gpu::RowLoops loops, const char* x, DType x_dtype, char* y,
                              DType y_dtype) {
  const int64_t x_step = loops.step[0] * int64_t(size_of(x_dtype));
  const int64_t y_step = loops.step[1] * int64_t(size_of(y_dtype));
  for (int64_t i = gpu::first_index(); i < loops.rows.numel; i += gpu::index_step()) {
    int64_t place[3];
    gpu::find_places(loops.rows, i, place);
    Wide total = 0;
    for (int64_t j = 0; j < loops.length; ++j) {
      total = Sum()(total, Wide(load_element<S>(x_dtype, x + place[0] + j * x_step)));
      gpu::store_wide(y_dtype, y + place[1] + j * y_step, total);
    }
  }
}

}  // namespace

void reduce(Cuda, Reduce how, View x, MutView y, double divisor) {
  switch (how) {
    case Reduce::sum:
      return run_rule<Sum>(x, y, divisor);
    case Reduce::sum_of_squares:
      return run_rule<SumOfSquares>(x, y, divisor);
    case Reduce::sum_of_sizes:
      return run_rule<SumOfSizes>(x, y, divisor);
    case Reduce::prod:
      return run_rule<Product>(x, y, divisor);
    case Reduce::max:
      return run_rule<Largest>(x, y, divisor);
    default:
      return run_rule<Smallest>(x, y, divisor);
  }
}

void find_first(Cuda, View x, View value, MutView index, int dim) {
  if (index.numel == 0) return;
  auto run = [&]<class S>(std::type_identity<S>) {
    gpu::start<find_first_kernel<S>>({gpu::blocks_for_each(index.numel * 32), gpu::kThreads},
                                     gpu::plan_rows(std::array<View, 3>{x, value, index}, dim),
                                     x.as<char>(), x.dtype, value.as<char>(), index.as<char>());
  };
  if (x.dtype == DType::f64) return run(std::type_identity<double>());
  if (is_floating(x.dtype)) return run(std::type_identity<float>());
  run(std::type_identity<int64_t>());
}

void cumsum(Cuda, View x, MutView y, int dim) {
  if (y.numel == 0) return;
  auto run = [&]<class S, class Wide>(std::type_identity<S>, std::type_identity<Wide>) {
    gpu::start<cumsum_kernel<S, Wide>>(
        {gpu::blocks_for_each(y.numel / (y.rank() ? y.size(dim) : 1)), gpu::kThreads},
        gpu::plan_rows(std::array<View, 2>{x, y}, dim), x.as<char>(), x.dtype, y.as<char>(),
        y.dtype);
  };
  if (x.dtype == DType::f64) return run(std::type_identity<double>(), std::type_identity<double>());
  if (is_floating(x.dtype)) return run(std::type_identity<float>(), std::type_identity<double>());
  run(std::type_identity<int64_t>(), std::type_identity<int64_t>());
}

}  // namespace tg::kernels
