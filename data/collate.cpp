#include "tapegrad/data/collate.h"

#include <algorithm>

#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/views.h"

namespace tg::data {

BatchWriter::BatchWriter(int64_t count, bool pin_memory) : count_(count) {
  // Page-locked memory serves copies to a GPU; without CUDA there is nothing to lock it for.
  check<DeviceError>(!pin_memory, "DataLoader: pin_memory needs a build with CUDA");
}

void BatchWriter::add(const std::vector<Tensor>& sample, int64_t index, const std::string& name) {
  std::string who = name;
  std::string number = "sample " + std::to_string(index);
  if (who != number) who = number + " (" + name + ")";
  if (filled_ == 0) {
    first_name_ = who;
    for (const Tensor& t : sample) {
      check(t.defined(), who, "has an undefined tensor");
      Shape shape = t.shape();
      shape.insert(0, count_);
      batch_.push_back(empty(shape, t.options(), Purpose::batch));
    }
  }
  check<ShapeError>(sample.size() == batch_.size(), who, "has", sample.size(), "tensors, but",
                    first_name_, "has", batch_.size());
  for (size_t k = 0; k < sample.size(); ++k) {
    const Tensor& t = sample[k];
    check(t.defined(), who, "has an undefined tensor");
    Tensor row = select(batch_[k], 0, filled_);
    check<ShapeError>(t.shape() == row.shape(),
                      "samples of one batch have different shapes:", row.shape(), "in", first_name_,
                      "but", t.shape(), "in", who,
                      "; resize them, or give the loader a collate function");
    check<DTypeError>(t.dtype() == row.dtype(),
                      "samples of one batch have different dtypes:", row.dtype(), "in", first_name_,
                      "but", t.dtype(), "in", who);
    copy_(row, t);
  }
  ++filled_;
}

std::vector<Tensor> BatchWriter::finish() {
  check<InternalError>(filled_ == count_, "BatchWriter:", filled_, "of", count_,
                       "samples were added");
  return std::move(batch_);
}

Tensor pad_stack(const std::vector<Tensor>& tensors, Scalar value) {
  check<ValueError>(!tensors.empty(), "pad_stack: an empty list");
  Shape shape = tensors[0].shape();
  check<ShapeError>(shape.rank() >= 1, "pad_stack: tensors need at least one dimension");
  for (const Tensor& t : tensors) {
    Shape other = t.shape();
    check<ShapeError>(other.rank() == shape.rank(), "pad_stack: shapes differ in rank:", shape,
                      other);
    shape[0] = std::max(shape[0], other[0]);
    other[0] = shape[0];
    check<ShapeError>(other == shape, "pad_stack: shapes differ behind the first dimension:", shape,
                      t.shape());
  }
  shape.insert(0, int64_t(tensors.size()));
  Tensor out = full(shape, value, tensors[0].options());
  for (size_t i = 0; i < tensors.size(); ++i)
    copy_(narrow(select(out, 0, int64_t(i)), 0, 0, tensors[i].size(0)), tensors[i]);
  return out;
}

}  // namespace tg::data
