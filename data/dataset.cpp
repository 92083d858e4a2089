#include "tapegrad/data/dataset.h"

#include "tapegrad/autograd/ops/views.h"

namespace tg::data {

void count_as_data(const Tensor& x) {
  Storage& storage = *x.impl()->storage;
  if (storage.purpose == Purpose::other) storage.set_purpose(Purpose::batch);
}

TensorDataset::TensorDataset(Tensor first, Tensor second)
    : first_(std::move(first)), second_(std::move(second)) {
  check<ShapeError>(first_.dim() >= 1 && second_.dim() >= 1 && first_.size(0) == second_.size(0),
                    "TensorDataset: lengths differ:", first_.shape(), second_.shape());
  count_as_data(first_);
  count_as_data(second_);
}

ImageAndLabel TensorDataset::get(int64_t index, Generator&) const {
  return {select(first_, 0, index), select(second_, 0, index)};
}

}  // namespace tg::data
