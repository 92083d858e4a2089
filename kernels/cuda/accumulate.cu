// Adding into memory that shows some places several times. Two threads must not add to one place,
// and the order of additions must not change, so it is turned around: a thread takes a place and
// finds all elements that lie there.
//
// With dimensions by falling stride, an index i of the outermost one leaves rest = place - i *
// stride for those behind it, which reach from 0 to the sum of (size - 1) * stride. That bounds i
// from both sides; where windows overlap k times, k indices are left to try. Dimensions that lead
// apart (a stride beyond all that those behind them reach) need no search: their index is given.
#include "tapegrad/kernels/accumulate.h"

#include <algorithm>
#include <numeric>

#include "tapegrad/kernels/cuda/add_to.cuh"
#include "tapegrad/kernels/cuda/elementwise.cuh"

namespace tg::kernels {
namespace {

// The dimensions that are searched, the last ones of kMaxRank; sizes of those before are 1. Strides
// in elements.
struct Search {
  int64_t size[kMaxRank], step[kMaxRank], x_step[kMaxRank];
  int64_t reach[kMaxRank];  // of the dimensions behind
  int64_t places;           // that all of them reach
};

// add(place in x) for every element that lies `rest` behind the first one, in a fixed order.
template <int kDim, class F>
__device__ inline void for_each_element(const Search& s, int64_t rest, int64_t x_place, F& add) {
  if constexpr (kDim == kMaxRank) {
    if (rest == 0) add(x_place);
  } else {
    const int64_t step = s.step[kDim], missing = rest - s.reach[kDim];
    int64_t first = 0, last = s.size[kDim] - 1;
    if (step > 0) {
      if (missing > 0) first = gpu::quotient(missing + step - 1, step);
      last = min(last, gpu::quotient(rest, step));
    }
    for (int64_t i = first; i <= last; ++i)
      for_each_element<kDim + 1>(s, rest - i * step, x_place + i * s.x_step[kDim], add);
  }
}

// apart: the dimensions that are not searched, of y and x, in bytes
template <class T>
__global__ void accumulate_kernel(gpu::Strided<1> apart, Search search, const char* x, char* y) {
  for (int64_t i = gpu::first_index(); i < apart.numel * search.places; i += gpu::index_step()) {
    const int64_t block = gpu::quotient(i, search.places), rest = i - block * search.places;
    int64_t place[2];
    gpu::find_places(apart, block, place);
    const T* from = reinterpret_cast<const T*>(x + place[1]);
    T* to = reinterpret_cast<T*>(y + place[0]) + rest;
    auto add = [&](int64_t x_place) { gpu::add_to(*to, from[x_place]); };
    for_each_element<0>(search, rest, 0, add);
  }
}

struct Plan {
  gpu::Strided<1> apart{0, 1, {}, {}};
  Search search{};
};

Plan plan_of(const View& x, const View& y) {
  const int rank = y.rank();
  int dims[kMaxRank];  // by falling stride of y
  std::iota(dims, dims + rank, 0);
  std::stable_sort(dims, dims + rank, [&](int a, int b) { return y.stride(a) > y.stride(b); });
  int64_t reach[kMaxRank + 1] = {};  // of the dimensions from here on
  for (int k = rank - 1; k >= 0; --k)
    reach[k] = reach[k + 1] + (y.size(dims[k]) - 1) * y.stride(dims[k]);

  Plan p;
  const int64_t bytes = int64_t(size_of(y.dtype));
  int k = 0;
  for (; k < rank && y.stride(dims[k]) > reach[k + 1]; ++k) {
    p.apart.size[k] = y.size(dims[k]);
    p.apart.step[0][k] = y.stride(dims[k]) * bytes;
    p.apart.step[1][k] = x.stride(dims[k]) * bytes;
    p.apart.numel *= y.size(dims[k]);
  }
  p.apart.rank = k;
  p.search.places = reach[k] + 1;
  std::fill_n(p.search.size, kMaxRank, 1);
  std::fill_n(p.search.reach, kMaxRank, reach[k]);
  for (; k < rank; ++k) {
    const int at = kMaxRank - rank + k;
    p.search.size[at] = y.size(dims[k]);
    p.search.step[at] = y.stride(dims[k]);
    p.search.x_step[at] = x.stride(dims[k]);
    p.search.reach[at] = reach[k + 1];
  }
  return p;
}

}  // namespace

void accumulate(Cuda, View x, MutView y) {
  if (y.numel == 0) return;
  const Plan p = plan_of(x, y);
  visit_all(y.dtype, [&]<class T>() {
    gpu::start<accumulate_kernel<T>>(
        {gpu::blocks_for_each(p.apart.numel * p.search.places), gpu::kThreads}, p.apart, p.search,
        x.as<char>(), y.as<char>());
  });
}

}  // namespace tg::kernels
