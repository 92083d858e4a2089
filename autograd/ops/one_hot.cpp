#include <limits>

#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/embedding.h"
#include "tapegrad/autograd/ops/indexing.h"
#include "tapegrad/autograd/ops/reduction.h"
#include "tapegrad/autograd/ops/views.h"

namespace tg {

Tensor one_hot(const Tensor& indices, int64_t classes) {
  Op op("one_hot");
  op.in(indices);
  check<DTypeError>(is_integral(indices.dtype()), "indices are integers, got", indices.dtype());
  if (classes < 0) {
    check<ValueError>(indices.numel() > 0,
                      "no indices to take the number of classes from; give it");
    const int64_t largest = max(indices).item_int64();
    check<IndexError>(largest >= 0 && largest < std::numeric_limits<int64_t>::max(), "the index",
                      largest, "is that of no class");
    classes = largest + 1;
  }
  Tensor at = unsqueeze(cast(indices, i64), -1);
  Shape shape = indices.shape();
  shape.push_back(classes);
  Tensor one = expand(scalar_tensor(1, {i64, indices.device()}), at.shape());
  return scatter_add(zeros(shape, {i64, indices.device()}), -1, at, one);
}

}  // namespace tg
