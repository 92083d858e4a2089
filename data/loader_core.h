// The loader without types: samples are lists of tensors.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tapegrad/core/function.h"
#include "tapegrad/core/tensor.h"

namespace tg {
class Generator;
}

namespace tg::data {

struct LoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;     // a new order each epoch, from (seed, epoch)
  bool drop_last = false;   // leave out a last batch that is smaller
  int workers = 0;          // threads that make batches; 0: made when asked for
  int prefetch = 2;         // batches kept ready per worker
  bool pin_memory = false;  // batches in page-locked memory, for copies to a GPU
  uint64_t seed = 0;        // of the order and of the samples' randomness
};

// An error while a sample was made: its name, its index and the cause.
struct DataError : Error {
  DataError(const std::string& what, int64_t sample) : Error(what), index(sample) {}
  int64_t index;  // -1: not one sample's fault (collation)
};

struct LoaderState {
  int64_t epoch = 0;
  int64_t batch = 0;  // batches of this epoch that have been delivered
};

class LoaderCore {
 public:
  struct Source {
    int64_t size = 0;
    Function<std::vector<Tensor>(int64_t index, Generator& random)> get;
    Function<std::string(int64_t index)> name;
    Function<std::vector<Tensor>(const std::vector<std::vector<Tensor>>&)> collate;
  };
  LoaderCore(Source source, LoaderOptions options);  // ValueError for options that make no sense
  ~LoaderCore();                                     // joins the workers
  LoaderCore(const LoaderCore&) = delete;
  LoaderCore& operator=(const LoaderCore&) = delete;

  // One loop over an epoch, or over what is left of it. Workers make batches ahead as long as it
  // lives; when it is gone, by a break or an exception too, nobody reads the data set any more.
  class Loop {
   public:
    Loop(Loop&& other) noexcept
        : core_(std::exchange(other.core_, nullptr)), number_(other.number_) {}
    Loop& operator=(Loop&& other) noexcept {
      std::swap(core_, other.core_);
      std::swap(number_, other.number_);
      return *this;
    }
    ~Loop();
    // The next batch; false at the end of the epoch. Rethrows what went wrong while it was made.
    // ValueError if this loop is over: it came to its end, another one began over the same loader,
    // or load_state moved it.
    bool next(std::vector<Tensor>& batch);

   private:
    friend class LoaderCore;
    Loop(LoaderCore* core, int64_t number) : core_(core), number_(number) {}
    LoaderCore* core_;
    int64_t number_;
  };

  int64_t batches() const;
  Loop start_epoch();
  LoaderState state() const;
  void load_state(LoaderState state);
  double waited() const;
  // The order of the samples in an epoch.
  std::vector<int64_t> order(int64_t epoch) const;

 private:
  struct Workers;
  std::vector<Tensor> make_batch(const std::vector<int64_t>& order, int64_t epoch,
                                 int64_t batch) const;
  std::vector<Tensor> make_sample(int64_t index, int64_t epoch) const;
  bool next(std::vector<Tensor>& batch);
  void stop_epoch();

  Source source_;
  LoaderOptions options_;
  std::unique_ptr<Workers> workers_;
  std::vector<int64_t> order_;
  int64_t epoch_ = 0, next_ = 0;
  int64_t loops_ = 0;  // begun so far; the last one is the one that may run
  bool running_ = false;
  double waited_ = 0;
};

}  // namespace tg::data
