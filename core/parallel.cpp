// The pool. A job lies on the stack of the thread that brings it. Everybody, the caller first,
// claims chunks from one counter; the caller never waits for a worker that has not started, so a
// core taken away by somebody else costs what that core would have done, not the whole job.
//
// Why a job may lie on a stack: a worker first counts itself into `attached_`, then looks whether
// a job is posted. The caller first withdraws the job, then waits until nobody is attached. All
// four steps are sequentially consistent, so either the worker finds the job withdrawn or the
// caller sees the worker.
#include "tapegrad/core/parallel.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "tapegrad/core/error.h"
#include "tapegrad/core/split_count.h"
#include "tapegrad/core/thread_state.h"

namespace tg {
namespace {

// How long somebody without work looks for more before going to sleep: a wake-up through the
// kernel takes about as long.
constexpr auto kSpinTime = std::chrono::microseconds(50);
constexpr int kMaxThreads = 1024;

constinit thread_local bool inside_parallel_work = false;

struct RegionGuard {
  bool old = inside_parallel_work;
  RegionGuard() { inside_parallel_work = true; }
  ~RegionGuard() { inside_parallel_work = old; }
};

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// True as soon as done() holds, false after kSpinTime.
template <class Done>
bool spin_until(Done&& done) {
  for (int i = 0; i < 32; ++i) {
    if (done()) return true;
    pause_briefly();
  }
  auto end = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      pause_briefly();
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

struct Job {
  Job(int64_t n, void (*w)(void*, int64_t), void* c) : chunks(n), work(w), context(c) {}

  const int64_t chunks;
  void (*const work)(void*, int64_t);
  void* const context;
  const ThreadState state = thread_state;  // of the caller
  std::exception_ptr error;                // written by whoever sets `failed`
  std::atomic<bool> failed{false};
  alignas(64) std::atomic<int64_t> next{0};

  bool has_chunks() const { return next.load(std::memory_order_relaxed) < chunks; }

  void take_chunks() noexcept {
    RegionGuard region;
    for (;;) {
      int64_t chunk = next.fetch_add(1, std::memory_order_relaxed);
      if (chunk >= chunks) return;
      try {
        work(context, chunk);
      } catch (...) {
        if (!failed.exchange(true)) error = std::current_exception();
        next.store(chunks, std::memory_order_relaxed);  // what has not started never will
      }
    }
  }
};

class Pool {
 public:
  void run(Job& job, int threads) {
    std::unique_lock<std::mutex> one_job(mutex_, std::try_to_lock);
    if (!one_job || closed_) {  // another thread has the pool
      job.take_chunks();
      return;
    }
    start_workers(threads - 1);
    job_.store(&job);
    posted_.fetch_add(1);
    if (sleeping_.load() > 0) posted_.notify_one();
    job.take_chunks();
    job_.store(nullptr);
    if (!spin_until([&] { return attached_.load() == 0; }))
      for (int n; (n = attached_.load()) != 0;) attached_.wait(n);
  }

  void resize(int threads) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (int(workers_.size()) != threads - 1) stop_workers();
  }

  // At the end of the process: joins the workers unless that could block.
  void close() {
    std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (inside_parallel_work || !lock) return;
    stop_workers();
    closed_ = true;
  }

 private:
  void start_workers(int n) {
    if (int(workers_.size()) == n || refused_ == n) return;
    stop_workers();
    stopping_.store(false);
    try {
      for (int i = 0; i < n; ++i)
        workers_.emplace_back([this, seen = posted_.load()] { work(seen); });
      refused_ = -1;
    } catch (const std::system_error&) {
      refused_ = n;  // no more threads to be had: fewer give the same result
    }
  }

  void stop_workers() {
    stopping_.store(true);
    posted_.fetch_add(1);
    posted_.notify_all();
    for (std::thread& t : workers_) t.join();
    workers_.clear();
    refused_ = -1;
  }

  void work(uint32_t seen) {
    for (;;) {
      wait_for_post(seen);
      if (stopping_.load()) return;
      attached_.fetch_add(1);
      if (Job* job = job_.load()) {
        // Wakes spread like a chain letter: the caller pays for one.
        if (sleeping_.load() > 0 && job->has_chunks()) posted_.notify_one();
        ThreadStateGuard state(job->state);
        job->take_chunks();
      }
      if (attached_.fetch_sub(1) == 1) attached_.notify_all();
    }
  }

  // Returns when `posted_` is no longer `seen`, and notes the new value.
  void wait_for_post(uint32_t& seen) {
    auto posted = [&] { return posted_.load() != seen; };
    if (!spin_until(posted)) {
      sleeping_.fetch_add(1);
      posted_.wait(seen);
      sleeping_.fetch_sub(1);
    }
    seen = posted_.load();
  }

  std::mutex mutex_;  // held while a job runs; guards workers_
  std::vector<std::thread> workers_;
  bool closed_ = false;
  int refused_ = -1;  // the number of workers that could not all be started
  alignas(64) std::atomic<uint32_t> posted_{0};
  std::atomic<Job*> job_{nullptr};
  std::atomic<int> sleeping_{0};
  std::atomic<bool> stopping_{false};
  alignas(64) std::atomic<int> attached_{0};
};

// Never destroyed, so that destructors of other statics may still call parallel_for.
std::atomic<Pool*> the_pool{nullptr};

Pool& pool() {
  static const bool made = [] {
    the_pool.store(new Pool);
    // The child of a fork has none of the workers and perhaps a locked mutex: it starts anew.
    pthread_atfork(nullptr, nullptr, [] { the_pool.store(new Pool); });
    return true;
  }();
  (void)made;
  static const struct Closer {
    ~Closer() { the_pool.load()->close(); }
  } closer;
  return *the_pool.load();
}

// Cores this process may use: its affinity mask, less what a container's quota takes away.
int usable_cores() {
  int cores = int(std::thread::hardware_concurrency());
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) cores = CPU_COUNT(&mask);
  if (std::FILE* file = std::fopen("/sys/fs/cgroup/cpu.max", "r")) {
    long long quota = 0, period = 0;
    if (std::fscanf(file, "%lld %lld", &quota, &period) == 2 && quota > 0 && period > 0)
      cores = std::min(cores, int((quota + period - 1) / period));
    std::fclose(file);
  }
  return std::clamp(cores, 1, kMaxThreads);
}

std::atomic<int> wanted_threads{0};  // 0: not decided yet

std::atomic<int64_t> jobs_split{0}, pieces_made{0};

}  // namespace

SplitCount split_count() { return {jobs_split.load(), pieces_made.load()}; }

int num_threads() {
  int n = wanted_threads.load(std::memory_order_relaxed);
  if (n > 0) [[likely]]
    return n;
  static const int cores = usable_cores();
  wanted_threads.compare_exchange_strong(n, cores);
  return wanted_threads.load();
}

void set_num_threads(int n) {
  check<ValueError>(n >= 1 && n <= kMaxThreads, "set_num_threads: from 1 to", kMaxThreads,
                    "are possible, got", n);
  check(!inside_parallel_work, "set_num_threads was called from inside parallel work");
  wanted_threads.store(n);
  pool().resize(n);
}

bool in_parallel_region() { return inside_parallel_work; }

namespace detail {

void run_chunks(int64_t chunks, void (*work)(void* context, int64_t chunk), void* context) {
  Job job(chunks, work, context);
  int threads = num_threads();
  if (chunks > 1 && !inside_parallel_work) {
    jobs_split.fetch_add(1, std::memory_order_relaxed);
    pieces_made.fetch_add(chunks, std::memory_order_relaxed);
  }
  if (threads == 1 || chunks <= 1 || inside_parallel_work)
    job.take_chunks();
  else
    pool().run(job, threads);
  if (job.failed.load(std::memory_order_relaxed)) std::rethrow_exception(job.error);
}

}  // namespace detail
}  // namespace tg
