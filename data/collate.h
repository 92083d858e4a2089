// Making a batch out of samples.
#pragma once
#include <string>
#include <vector>

#include "tapegrad/core/tensor.h"

namespace tg::data {

// Writes samples straight into the batch's memory, one after the other. The first sample fixes
// shapes and dtypes; one that differs raises a ShapeError or DTypeError that names both.
class BatchWriter {
 public:
  explicit BatchWriter(int64_t count, bool pin_memory = false);
  void add(const std::vector<Tensor>& sample, int64_t index, const std::string& name);
  std::vector<Tensor> finish();  // all `count` samples must have been added

 private:
  int64_t count_, filled_ = 0;
  std::vector<Tensor> batch_;
  std::string first_name_;
};

// Stacks tensors of different sizes along their first dimension, filling up with `value`; the
// others must be equal. For custom collate functions: texts of different lengths.
Tensor pad_stack(const std::vector<Tensor>& tensors, Scalar value = 0);

}  // namespace tg::data
