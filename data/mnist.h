// Fashion-MNIST and its relatives as a data set of images.
#pragma once
#include <string>
#include <vector>

#include "tapegrad/data/dataset.h"
#include "tapegrad/data/idx.h"

namespace tg::data {

struct MnistOptions {
  double mean = 0.2860, std = 0.3530;  // of Fashion-MNIST's training pixels in [0, 1]
  bool augment = false;                // random crop with padding 2, random horizontal flip
};

// Samples: image f32 [1,rows,columns], normalised; label i64, rank 0.
class Mnist : public Dataset<ImageAndLabel> {
 public:
  using Options = MnistOptions;
  Mnist(const std::string& folder, bool train, Options options = {});
  Mnist(ImagesAndLabels data, Options options = {});
  int64_t size() const override { return data_.labels.size(0); }
  ImageAndLabel get(int64_t index, Generator& random) const override;
  const ImagesAndLabels& raw() const { return data_; }

 private:
  ImagesAndLabels data_;
  Options options_;
};

}  // namespace tg::data
