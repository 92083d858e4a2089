// Sorting lines. Every value becomes an unsigned key (kernels/sort_key.h, inverted for a falling
// order); a key and its index together are unique, so any way of sorting the pairs is stable.
//
//   sort_runs_kernel  a block sorts a run of up to 1024 items in shared memory (bitonic network)
//   merge_kernel      two runs become one: an item's place is its own number and how many of the
//                     other run come before it, which it finds by halving
//   write_kernel      values and indices of the first k
//
// topk is the same; what lies beyond the first k of a run is dropped when runs are merged.
#include "tapegrad/kernels/sort.h"

#include <bit>

#include "tapegrad/core/allocator.h"
#include "tapegrad/kernels/cuda/rows.cuh"
#include "tapegrad/kernels/sort_key.h"

namespace tg::kernels {
namespace {

constexpr int64_t kRun = 1024;

template <class Key>
struct Item {
  Key key, index;  // of one type: no padding that nobody writes
  __device__ bool operator<(const Item& o) const {
    return key < o.key || (key == o.key && index < o.index);
  }
};
template <class T>
using ItemOf = Item<std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>>;

// What is sorted: lines of n elements, of which the first `kept` in order are wanted.
struct Lines {
  gpu::RowLoops loops;  // of x, values, indices
  int64_t n, kept, runs;
  bool falling;
};

// items [lines, n]: each run of a line in order; padded: a power of 2 that runs are filled up to
template <class T>
__global__ void sort_runs_kernel(Lines lines, int padded, const char* x, ItemOf<T>* items) {
  ItemOf<T>* run = gpu::dynamic_shared<ItemOf<T>>();
  const int64_t line = int64_t(blockIdx.x) / lines.runs, n = lines.n;
  const int64_t first = int64_t(blockIdx.x) % lines.runs * kRun;
  int64_t place[3];
  gpu::find_places(lines.loops.rows, line, place);
  const T* from = reinterpret_cast<const T*>(x + place[0]);
  for (int i = int(threadIdx.x); i < padded; i += int(blockDim.x)) {
    using Key = decltype(run->key);
    run[i] = {Key(-1), Key(-1)};
    if (first + i >= n) continue;
    const auto key = key_of(from[(first + i) * lines.loops.step[0]]);
    run[i] = {lines.falling ? decltype(key)(~key) : key, Key(first + i)};
  }
  __syncthreads();
  for (int size = 2; size <= padded; size *= 2)
    for (int distance = size / 2; distance > 0; distance /= 2) {
      for (int t = int(threadIdx.x); t < padded / 2; t += int(blockDim.x)) {
        const int low = 2 * t - (t & (distance - 1)), high = low + distance;
        const bool rising = (low & size) == 0;
        const ItemOf<T> a = run[low], b = run[high];
        if ((b < a) != rising) continue;
        run[low] = b;
        run[high] = a;
      }
      __syncthreads();
    }
  for (int64_t i = threadIdx.x; i < min(kRun, n - first); i += blockDim.x)
    items[line * n + first + i] = run[i];
}

// Runs of `length` items become runs of twice as many.
template <class Key>
__global__ void merge_kernel(Lines lines, int64_t length, const Item<Key>* from, Item<Key>* to) {
  const int64_t n = lines.n;
  for (int64_t i = gpu::first_index(); i < lines.loops.rows.numel * n; i += gpu::index_step()) {
    const int64_t line = gpu::quotient(i, n), run = gpu::quotient(i - line * n, length);
    const int64_t own = i - line * n - run * length;
    if (own >= lines.kept) continue;
    const int64_t other = (run ^ 1) * length;  // where the other run begins
    const Item<Key> item = from[i];
    int64_t low = 0, high = max(int64_t(0), min(min(length, lines.kept), n - other));
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (from[line * n + other + middle] < item)
        low = middle + 1;
      else
        high = middle;
    }
    if (own + low < lines.kept) to[line * n + (run & ~int64_t(1)) * length + own + low] = item;
  }
}

template <class Bits, class Key>
__global__ void write_kernel(Lines lines, const Item<Key>* items, const char* x, char* values,
                             char* indices) {
  for (int64_t i = gpu::first_index(); i < lines.loops.rows.numel * lines.kept;
       i += gpu::index_step()) {
    const int64_t line = gpu::quotient(i, lines.kept), at = i - line * lines.kept;
    const int64_t* step = lines.loops.step;
    int64_t place[3];
    gpu::find_places(lines.loops.rows, line, place);
    const auto index = int64_t(items[line * lines.n + at].index);
    reinterpret_cast<int64_t*>(indices + place[2])[at * step[2]] = index;
    reinterpret_cast<Bits*>(values + place[1])[at * step[1]] =
        reinterpret_cast<const Bits*>(x + place[0])[index * step[0]];
  }
}

template <class T>
void sort_lines(const Lines& lines, View x, MutView values, MutView indices) {
  using Items = ItemOf<T>;
  const int64_t count = lines.loops.rows.numel * lines.n;
  const size_t bytes = size_t(count) * sizeof(Items);
  Workspace first(bytes, cuda::current_device());
  Workspace second(lines.runs > 1 ? bytes : 1, cuda::current_device());
  Items *items = first.as<Items>(), *spare = second.as<Items>();

  const int padded = int(std::bit_ceil(uint64_t(std::min(lines.n, kRun))));
  const int threads = std::clamp(padded / 2, 32, gpu::kThreads);
  gpu::start<sort_runs_kernel<T>>({dim3(unsigned(lines.loops.rows.numel * lines.runs)),
                                   unsigned(threads), size_t(padded) * sizeof(Items)},
                                  lines, padded, x.as<char>(), items);
  const gpu::Config each{gpu::blocks_for_each(count), gpu::kThreads};
  for (int64_t length = kRun; length < lines.n; length *= 2) {
    gpu::start<merge_kernel<decltype(items->key)>>(each, lines, length, items, spare);
    std::swap(items, spare);
  }
  gpu::start<write_kernel<UInt<sizeof(T)>, decltype(items->key)>>(
      {gpu::blocks_for_each(values.numel), gpu::kThreads}, lines, items, x.as<char>(),
      values.as<char>(), indices.as<char>());
}

void order(View x, int dim, bool falling, MutView values, MutView indices) {
  if (values.numel == 0) return;
  Lines lines{};
  lines.loops = gpu::plan_rows(std::array<View, 3>{x, values, indices}, dim);
  lines.n = lines.loops.length;
  lines.kept = x.rank() ? values.size(dim) : 1;
  lines.runs = (lines.n + kRun - 1) / kRun;
  lines.falling = falling;
  check<ShapeError>(
      lines.n < int64_t(1) << 32 && lines.loops.rows.numel * lines.runs < int64_t(1) << 31,
      "sorts on CUDA lines of fewer than 2^32 elements, 2^41 of them at most, got", x.shape());
  visit_all(x.dtype, [&]<class T>() { sort_lines<T>(lines, x, values, indices); });
}

}  // namespace

void sort(Cuda, View x, int dim, bool descending, MutView values, MutView indices) {
  order(x, dim, descending, values, indices);
}

void topk(Cuda, View x, int dim, bool largest, MutView values, MutView indices) {
  order(x, dim, largest, values, indices);
}

}  // namespace tg::kernels
