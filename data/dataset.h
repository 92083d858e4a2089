// Where samples come from.
#pragma once
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "tapegrad/core/tensor.h"

namespace tg {
class Generator;
}

namespace tg::data {

// get() is called from several threads at once and must not change the data set. All randomness
// (crops, flips, noise) must come from `random`, which depends on the loader's seed, the epoch and
// the index alone: then the number of workers changes no result.
template <class Sample>
class Dataset {
 public:
  using SampleType = Sample;
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  virtual Sample get(int64_t index, Generator& random) const = 0;
  // For error messages: a file, a line number.
  virtual std::string name(int64_t index) const { return "sample " + std::to_string(index); }
};

// Memory that a data set keeps is data in the memory report, like the batches made of it. For the
// constructor of a data set that holds tensors.
void count_as_data(const Tensor& x);

using ImageAndLabel = std::tuple<Tensor, Tensor>;  // image, label (i64, rank 0)

// Rows of tensors of equal length: sample i is {first[i], second[i]}.
class TensorDataset : public Dataset<ImageAndLabel> {
 public:
  TensorDataset(Tensor first, Tensor second);  // ShapeError if their lengths differ
  int64_t size() const override { return first_.size(0); }
  ImageAndLabel get(int64_t index, Generator& random) const override;

 private:
  Tensor first_, second_;
};

// Some of another data set's samples.
template <class Sample>
class Subset : public Dataset<Sample> {
 public:
  Subset(std::shared_ptr<const Dataset<Sample>> of, std::vector<int64_t> indices)
      : of_(std::move(of)), indices_(std::move(indices)) {
    check<ValueError>(of_ != nullptr, "Subset: there is no data set");
    for (int64_t i : indices_)
      check<IndexError>(i >= 0 && i < of_->size(), "Subset: index", i,
                        "is outside of a data set of", of_->size());
  }
  int64_t size() const override { return int64_t(indices_.size()); }
  Sample get(int64_t i, Generator& random) const override { return of_->get(index(i), random); }
  std::string name(int64_t i) const override { return of_->name(index(i)); }

 private:
  int64_t index(int64_t i) const {
    check<IndexError>(i >= 0 && i < size(), "Subset: there is no sample", i, "among", size());
    return indices_[size_t(i)];
  }
  std::shared_ptr<const Dataset<Sample>> of_;
  std::vector<int64_t> indices_;
};

}  // namespace tg::data
