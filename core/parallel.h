// Splitting work over the threads of one pool for the whole process.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tg {

// Threads that work takes part in, the caller included. Default: the cores this process may use.
int num_threads();
// 1 or more, else ValueError. Not to be called from inside parallel work.
void set_num_threads(int n);
// True inside a piece of parallel work: a nested parallel_for runs inline.
bool in_parallel_region();

namespace detail {
// Calls work(context, chunk) for chunk in [0, chunks), each once, on any thread. The first
// exception is rethrown on the caller after all chunks that were started have ended.
void run_chunks(int64_t chunks, void (*work)(void* context, int64_t chunk), void* context);
}  // namespace detail

// fn(begin, end) over [0, n), cut at multiples of grain only: which pieces there are depends on
// n and grain, who runs them does not change a result. n <= grain runs on the caller at once.
template <class F>
void parallel_for(int64_t n, int64_t grain, F&& fn) {
  if (n <= 0) return;
  if (grain < 1) grain = 1;
  if (n <= grain) {
    fn(int64_t(0), n);
    return;
  }
  struct Job {
    F& fn;
    int64_t n, grain;
  } job{fn, n, grain};
  detail::run_chunks((n + grain - 1) / grain,
                     [](void* context, int64_t chunk) {
                       auto& j = *static_cast<Job*>(context);
                       int64_t begin = chunk * j.grain;
                       int64_t end = begin + j.grain;
                       j.fn(begin, end < j.n ? end : j.n);
                     },
                     &job);
}

// combine(... combine(map(0, grain), map(grain, 2 * grain)) ...): partial results are combined in
// the order of the index, so the bits do not depend on the threads. n == 0 gives identity.
template <class T, class Map, class Combine>
T parallel_reduce(int64_t n, int64_t grain, T identity, Map&& map, Combine&& combine) {
  if (grain < 1) grain = 1;
  if (n <= 0) return identity;
  if (n <= grain) return map(int64_t(0), n);
  std::vector<T> partial(std::size_t((n + grain - 1) / grain), identity);
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    partial[std::size_t(begin / grain)] = map(begin, end);
  });
  T result = partial[0];
  for (std::size_t i = 1; i < partial.size(); ++i) result = combine(result, partial[i]);
  return result;
}

}  // namespace tg
