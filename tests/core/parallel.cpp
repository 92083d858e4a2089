#include "tapegrad/core/parallel.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>

#include "catch.h"
#include "tapegrad/core/error.h"
#include "tapegrad/core/scope.h"

using namespace tg;

namespace {

// The number of threads as it was, at the end of a test.
struct KeepThreads {
  int before = num_threads();
  ~KeepThreads() { set_num_threads(before); }
};

// Every index once, pieces cut at multiples of grain only.
void check_cover(int64_t n, int64_t grain) {
  std::vector<std::atomic<int>> seen(size_t(n) + 1);
  std::atomic<bool> well_cut{true};
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    bool whole = begin == 0 && end == n && n <= grain;
    if (begin % grain != 0 || (end != std::min(begin + grain, n) && !whole)) well_cut = false;
    for (int64_t i = begin; i < end; ++i) ++seen[size_t(i)];
  });
  CHECK(well_cut);
  int64_t once = 0;
  for (int64_t i = 0; i < n; ++i) once += seen[size_t(i)] == 1;
  CHECK(once == n);
}

}  // namespace

TEST_CASE("parallel_for covers the range once for any number of threads", "[pool]") {
  KeepThreads keep;
  for (int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    CHECK(num_threads() == threads);
    for (int64_t n : {0, 1, 2, 9, 10, 11, 30, 1000, 1001})
      for (int64_t grain : {1, 3, 10, 5000}) check_cover(n, grain);
  }
}

TEST_CASE("parallel_for hands chunks to other threads", "[pool]") {
  KeepThreads keep;
  set_num_threads(3);
  std::mutex mutex;
  std::set<std::thread::id> ids;
  // Each chunk waits until two threads are in: without a second one this would not end.
  std::atomic<int> inside{0};
  parallel_for(2, 1, [&](int64_t, int64_t) {
    ++inside;
    while (inside < 2) std::this_thread::yield();
    std::lock_guard<std::mutex> lock(mutex);
    ids.insert(std::this_thread::get_id());
  });
  CHECK(ids.size() == 2);
}

TEST_CASE("parallel_reduce gives the same bits for any number of threads", "[pool]") {
  KeepThreads keep;
  std::vector<float> x(10007);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 1.0f / float(i + 1);
  auto sum = [&] {
    return parallel_reduce(
        int64_t(x.size()), 100, 0.0f,
        [&](int64_t b, int64_t e) { return std::accumulate(&x[size_t(b)], &x[0] + e, 0.0f); },
        [](float a, float b) { return a + b; });
  };
  set_num_threads(1);
  float one = sum();
  CHECK(one == Approx(9.788313).epsilon(1e-5));  // log(10007) + 0.577216 + 1 / 20014
  for (int threads : {2, 3, 7}) {
    set_num_threads(threads);
    CHECK(sum() == one);
  }
  CHECK(parallel_reduce(
            0, 10, 42, [](int64_t, int64_t) { return 1; }, [](int a, int b) { return a + b; }) ==
        42);
}

TEST_CASE("Nested parallel work runs inline", "[pool]") {
  KeepThreads keep;
  set_num_threads(3);
  CHECK_FALSE(in_parallel_region());
  std::atomic<int> inner{0}, inline_calls{0};
  parallel_for(8, 1, [&](int64_t, int64_t) {
    auto outer_thread = std::this_thread::get_id();
    parallel_for(8, 1, [&](int64_t, int64_t) {
      ++inner;
      inline_calls += in_parallel_region() && std::this_thread::get_id() == outer_thread;
    });
  });
  CHECK(inner == 64);
  CHECK(inline_calls == 64);
  CHECK_FALSE(in_parallel_region());
}

TEST_CASE("An exception in a chunk reaches the caller and the pool goes on", "[pool]") {
  KeepThreads keep;
  for (int threads : {1, 3}) {
    set_num_threads(threads);
    for (int round = 0; round < 20; ++round) {
      std::atomic<int> running{0};
      auto work = [&] {
        parallel_for(100, 1, [&](int64_t begin, int64_t) {
          ++running;
          if (begin % 10 == 7) {
            --running;
            throw std::out_of_range("chunk");
          }
          --running;
        });
      };
      CHECK_THROWS_AS(work(), std::out_of_range);
      CHECK(running == 0);  // nobody is still at work
      CHECK_FALSE(in_parallel_region());
    }
    check_cover(100, 1);
  }
}

TEST_CASE("set_num_threads checks its argument and where it is called", "[pool]") {
  KeepThreads keep;
  CHECK_THROWS_AS(set_num_threads(0), ValueError);
  CHECK_THROWS_AS(set_num_threads(-3), ValueError);
  set_num_threads(2);
  CHECK_THROWS_AS(parallel_for(10, 1, [](int64_t, int64_t) { set_num_threads(3); }), Error);
  CHECK(num_threads() == 2);
}

TEST_CASE("Several threads may use the pool at once, and resize it", "[pool]") {
  KeepThreads keep;
  set_num_threads(3);
  std::atomic<int> wrong{0};
  std::vector<std::thread> users;
  for (int user = 0; user < 4; ++user)
    users.emplace_back([&, user] {
      for (int round = 0; round < 200; ++round) {
        std::atomic<int64_t> sum{0};
        parallel_for(100, 3, [&](int64_t b, int64_t e) {
          for (int64_t i = b; i < e; ++i) sum += i;
        });
        wrong += sum != 4950;
        if (user == 0 && round % 20 == 0) set_num_threads(1 + round / 20 % 4);
      }
    });
  for (std::thread& t : users) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("Workers carry the caller's state and lose it again", "[pool]") {
  KeepThreads keep;
  set_num_threads(3);
  ThreadState mine = thread_state;
  mine.grad_mode = false;
  mine.autocast = true;
  mine.autocast_dtype = f16;
  std::atomic<int> right{0}, inside{0};
  {
    ThreadStateGuard guard(mine);
    Scope scope("outer");
    parallel_for(3, 1, [&](int64_t, int64_t) {
      ++inside;
      while (inside < 3) std::this_thread::yield();
      right += !thread_state.grad_mode && thread_state.autocast &&
               thread_state.autocast_dtype == f16 && std::string(running_operator()) == "outer";
    });
  }
  CHECK(right == 3);
  inside = 0;
  std::atomic<int> clean{0};
  parallel_for(3, 1, [&](int64_t, int64_t) {
    ++inside;
    while (inside < 3) std::this_thread::yield();
    clean += thread_state.grad_mode && !thread_state.autocast && thread_state.scope == nullptr;
  });
  CHECK(clean == 3);
}
