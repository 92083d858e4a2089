#include "tapegrad/data/loader_core.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <mutex>
#include <numeric>
#include <system_error>
#include <thread>

#include "tapegrad/autograd/grad_mode.h"
#include "tapegrad/core/random.h"
#include "tapegrad/data/collate.h"

namespace tg::data {
namespace {

// A seed for each purpose, so that order and samples do not share a stream: the bits of a Philox
// block whose counter is what the randomness may depend on.
uint64_t derived_seed(uint64_t seed, uint64_t purpose, uint64_t epoch, uint64_t index) {
  uint64_t x = seed;
  for (uint64_t part : {purpose, epoch, index}) {  // splitmix64's finaliser between the parts
    x += 0x9e3779b97f4a7c15ull + part;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    x ^= x >> 31;
  }
  return x;
}
constexpr uint64_t kOrder = 1, kSample = 2;

}  // namespace

// The worker threads and the ring they fill. Batch b of the epoch lies in slot b % slots.
struct LoaderCore::Workers {
  struct Slot {
    bool ready = false;
    std::vector<Tensor> batch;
    std::exception_ptr error;
  };

  std::mutex mutex;
  std::condition_variable work;   // there is a batch to make, or it is time to end
  std::condition_variable ready;  // a slot was filled, or a worker stopped
  std::vector<Slot> ring;
  std::vector<std::thread> threads;
  bool quit = false;
  // The epoch that is being made; claimed batches are [.., next_claim), taken ones [.., next_take).
  bool active = false;
  std::vector<int64_t> order;
  int64_t epoch = 0, batches = 0, next_claim = 0, next_take = 0;
  int busy = 0;

  Workers(const LoaderCore& core, int count, int slots) : ring(size_t(slots)) {
    try {
      for (int i = 0; i < count; ++i) threads.emplace_back([this, &core] { run(core); });
    } catch (const std::system_error& e) {  // fewer make the same batches
      check<Error>(!threads.empty(), "DataLoader: the system gives no worker thread:", e.what(),
                   "(workers = 0 makes batches in the caller's)");
    }
  }
  ~Workers() {
    {
      std::lock_guard lock(mutex);
      quit = true;
      active = false;
    }
    work.notify_all();
    for (std::thread& t : threads) t.join();
  }

  bool has_work() const {
    return active && next_claim < batches && next_claim < next_take + int64_t(ring.size());
  }

  void run(const LoaderCore& core) {
    NoGradGuard no_grad;
    std::unique_lock lock(mutex);
    while (true) {
      work.wait(lock, [&] { return quit || has_work(); });
      if (quit) return;
      int64_t b = next_claim++;
      int64_t this_epoch = epoch;
      ++busy;
      lock.unlock();
      Slot made;
      try {
        made.batch = core.make_batch(order, this_epoch, b);
      } catch (...) {
        made.error = std::current_exception();
      }
      made.ready = true;
      lock.lock();
      --busy;
      if (active) ring[size_t(b) % ring.size()] = std::move(made);
      ready.notify_all();
    }
  }

  void start(std::vector<int64_t> new_order, int64_t new_epoch, int64_t new_batches,
             int64_t first) {
    {
      std::lock_guard lock(mutex);
      order = std::move(new_order);
      epoch = new_epoch;
      batches = new_batches;
      next_claim = next_take = first;
      for (Slot& s : ring) s = {};
      active = true;
    }
    work.notify_all();
  }

  // Waits for the batches that are being made and drops them.
  void stop() {
    std::unique_lock lock(mutex);
    active = false;
    ready.wait(lock, [&] { return busy == 0; });
    for (Slot& s : ring) s = {};
  }

  std::vector<Tensor> take() {
    std::unique_lock lock(mutex);
    Slot& slot = ring[size_t(next_take) % ring.size()];
    ready.wait(lock, [&] { return slot.ready; });
    Slot taken = std::exchange(slot, {});
    ++next_take;
    lock.unlock();
    work.notify_all();
    if (taken.error) std::rethrow_exception(taken.error);
    return std::move(taken.batch);
  }
};

LoaderCore::LoaderCore(Source source, LoaderOptions options)
    : source_(std::move(source)), options_(options) {
  check<ValueError>(options.batch_size >= 1, "DataLoader: batch_size must be at least 1, got",
                    options.batch_size);
  check<ValueError>(options.workers >= 0 && options.workers <= 1024,
                    "DataLoader: workers must be between 0 and 1024, got", options.workers);
  check<ValueError>(options.prefetch >= 1 && options.prefetch <= 1024,
                    "DataLoader: prefetch must be between 1 and 1024, got", options.prefetch);
  if (options.drop_last && source_.size > 0 && batches() == 0)
    std::fprintf(
        stderr,
        "warning: DataLoader: drop_last leaves no batch: %lld samples are fewer than the batch "
        "size %lld\n",
        static_cast<long long>(source_.size), static_cast<long long>(options.batch_size));
}

LoaderCore::~LoaderCore() = default;

int64_t LoaderCore::batches() const {
  int64_t size = options_.batch_size;
  int64_t whole = source_.size / size;
  return options_.drop_last || source_.size % size == 0 ? whole : whole + 1;
}

std::vector<int64_t> LoaderCore::order(int64_t epoch) const {
  std::vector<int64_t> order(static_cast<size_t>(source_.size));
  std::iota(order.begin(), order.end(), int64_t(0));
  if (!options_.shuffle) return order;
  Generator random(derived_seed(options_.seed, kOrder, uint64_t(epoch), 0));
  // Fisher and Yates.
  for (int64_t i = source_.size - 1; i > 0; --i)
    std::swap(order[size_t(i)], order[size_t(random.integer(i + 1))]);
  return order;
}

std::vector<Tensor> LoaderCore::make_sample(int64_t index, int64_t epoch) const {
  Generator random(derived_seed(options_.seed, kSample, uint64_t(epoch), uint64_t(index)));
  std::string why = "an exception of unknown type";
  try {
    return source_.get(index, random);
  } catch (const std::exception& e) {
    why = e.what();
  } catch (...) {}
  std::string name = source_.name(index);
  std::string number = "sample " + std::to_string(index);
  throw DataError("loading " + (name == number ? number : number + " (" + name + ")") + ": " + why,
                  index);
}

std::vector<Tensor> LoaderCore::make_batch(const std::vector<int64_t>& order, int64_t epoch,
                                           int64_t batch) const {
  NoGradGuard no_grad;
  int64_t begin = batch * options_.batch_size;
  int64_t end = begin + std::min(options_.batch_size, source_.size - begin);
  if (source_.collate) {
    std::vector<std::vector<Tensor>> samples;
    for (int64_t i = begin; i < end; ++i) samples.push_back(make_sample(order[size_t(i)], epoch));
    try {
      return source_.collate(samples);
    } catch (const std::exception& e) {
      throw DataError("collating batch " + std::to_string(batch) + ": " + e.what(), -1);
    } catch (...) {
      throw DataError("collating batch " + std::to_string(batch) + ": an exception of unknown type",
                      -1);
    }
  }
  BatchWriter writer(end - begin, options_.pin_memory);
  for (int64_t i = begin; i < end; ++i) {
    int64_t index = order[size_t(i)];
    writer.add(make_sample(index, epoch), index, source_.name(index));
  }
  return writer.finish();
}

LoaderCore::Loop LoaderCore::start_epoch() {
  if (options_.workers > 0 && !workers_)
    workers_ =
        std::make_unique<Workers>(*this, options_.workers, options_.workers * options_.prefetch);
  if (running_) {  // the last loop was left early: its epoch is over
    stop_epoch();
    ++epoch_;
    next_ = 0;
  }
  if (next_ > 0 && next_ >= batches()) {
    ++epoch_;
    next_ = 0;
  }
  order_ = order(epoch_);
  waited_ = 0;
  running_ = true;
  Loop loop(this, ++loops_);
  if (workers_) workers_->start(order_, epoch_, batches(), next_);
  return loop;
}

LoaderCore::Loop::~Loop() {
  // Its epoch is over only when the next one begins: until then state() tells where it was left.
  if (core_ && core_->loops_ == number_ && core_->workers_) core_->workers_->stop();
}

bool LoaderCore::Loop::next(std::vector<Tensor>& batch) {
  check<ValueError>(core_->running_ && core_->loops_ == number_,
                    "DataLoader: this loop is over: it came to its end, another one began over the "
                    "same loader, or the loader was moved by load_state or set_epoch");
  return core_->next(batch);
}

void LoaderCore::stop_epoch() {
  if (workers_) workers_->stop();
  running_ = false;
}

bool LoaderCore::next(std::vector<Tensor>& batch) {
  if (next_ >= batches()) {
    stop_epoch();
    ++epoch_;
    next_ = 0;
    return false;
  }
  auto start = std::chrono::steady_clock::now();
  int64_t b = next_++;  // also counts a batch that raises, so that one can go on behind it
  batch = workers_ ? workers_->take() : make_batch(order_, epoch_, b);
  waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (const Tensor& t : batch)
    if (t.defined()) t.impl()->storage->set_purpose(Purpose::batch);
  return true;
}

LoaderState LoaderCore::state() const { return {epoch_, next_}; }

void LoaderCore::load_state(LoaderState state) {
  check<ValueError>(state.epoch >= 0 && state.batch >= 0 && state.batch <= batches(),
                    "DataLoader: the saved position, epoch", state.epoch, "batch", state.batch,
                    ", does not fit a loader of", batches(), "batches per epoch");
  if (running_) stop_epoch();
  epoch_ = state.epoch;
  next_ = state.batch;
}

double LoaderCore::waited() const { return waited_; }

}  // namespace tg::data
