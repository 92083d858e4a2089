// Batches from a data set, made by worker threads while the training runs.
//
//   DataLoader loader(dataset, {.batch_size = 64, .shuffle = true, .workers = 2, .seed = 1});
//   for (auto [x, y] : loader) { ... }            // one epoch; the next loop is the next epoch
//
// Batches come in order. Their contents depend on the data, the options and (seed, epoch) alone,
// never on the number of workers.
#pragma once
#include <memory>
#include <optional>

#include "tapegrad/core/function.h"
#include "tapegrad/data/dataset.h"
#include "tapegrad/data/loader_core.h"
#include "tapegrad/data/sample.h"

namespace tg::data {

template <class Sample>
class DataLoader {
 public:
  using Collate = Function<Sample(const std::vector<Sample>&)>;

  // `collate` makes a batch of a list of samples; default: stack each tensor along a new first
  // dimension, which needs equal shapes and dtypes.
  explicit DataLoader(std::shared_ptr<const Dataset<Sample>> dataset, LoaderOptions options = {},
                      Collate collate = {});

  class iterator {
   public:
    using value_type = Sample;
    using difference_type = std::ptrdiff_t;
    const Sample& operator*() const { return *batch_; }
    iterator& operator++() {
      advance();
      return *this;
    }
    void operator++(int) { advance(); }
    bool operator==(std::default_sentinel_t) const { return !batch_; }

   private:
    friend class DataLoader;
    explicit iterator(LoaderCore::Loop loop) : loop_(std::move(loop)) { advance(); }
    void advance();
    LoaderCore::Loop loop_;
    std::optional<Sample> batch_;
  };

  // Starts the epoch, or goes on where a loaded state says. Leaving the loop early is fine; the
  // next begin() then starts the following epoch. One loop at a time: going on with an older one
  // is a ValueError.
  iterator begin() { return iterator(core_.start_epoch()); }
  std::default_sentinel_t end() const { return {}; }

  int64_t size() const { return core_.batches(); }  // batches per epoch
  int64_t samples() const { return dataset_->size(); }
  int64_t epoch() const { return core_.state().epoch; }
  void set_epoch(int64_t epoch) { core_.load_state({epoch, 0}); }
  // Where the next batch comes from; part of a checkpoint.
  LoaderState state() const { return core_.state(); }
  void load_state(LoaderState state) { core_.load_state(state); }
  // Seconds that next() waited for workers since the epoch began.
  double waited() const { return core_.waited(); }

 private:
  static LoaderCore::Source source(const Dataset<Sample>* data, Collate collate);

  std::shared_ptr<const Dataset<Sample>> dataset_;
  LoaderCore core_;
};

template <class Sample>
DataLoader<Sample>::DataLoader(std::shared_ptr<const Dataset<Sample>> dataset,
                               LoaderOptions options, Collate collate)
    : dataset_(std::move(dataset)), core_(source(dataset_.get(), std::move(collate)), options) {}

template <class Sample>
void DataLoader<Sample>::iterator::advance() {
  batch_.reset();  // the old batch's memory goes back before the next is taken
  std::vector<Tensor> tensors;
  if (loop_.next(tensors)) batch_ = from_list<Sample>(tensors);
}

template <class Sample>
LoaderCore::Source DataLoader<Sample>::source(const Dataset<Sample>* data, Collate collate) {
  check<ValueError>(data != nullptr, "DataLoader: there is no data set");
  LoaderCore::Source s;
  s.size = data->size();
  s.get = [data](int64_t i, Generator& random) { return to_list(data->get(i, random)); };
  s.name = [data](int64_t i) { return data->name(i); };
  if (collate)
    s.collate = [collate](const std::vector<std::vector<Tensor>>& samples) {
      std::vector<Sample> typed;
      for (const auto& sample : samples) typed.push_back(from_list<Sample>(sample));
      return to_list(collate(typed));
    };
  return s;
}

// Compiled once, in data/loader.cpp.
extern template class DataLoader<ImageAndLabel>;

template <class Data>
DataLoader(std::shared_ptr<Data>, LoaderOptions = {}) -> DataLoader<typename Data::SampleType>;

}  // namespace tg::data
