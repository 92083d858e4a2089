// Comparing results with references, for the tests of the operator table.
#pragma once
#include <string>

#include "tapegrad/core/tensor.h"

namespace tg::test {

// Empty if y (of any dtype) is near the f64 (or exact) reference; else what differs, in one line.
// Near: |y - r| <= ulps * eps(dtype) * (|r| + largest |r|); NaN and infinities must be met.
std::string difference(const Tensor& y, const Tensor& reference, DType dtype, double ulps);
// The same bytes in the same logical order.
bool same_bits(const Tensor& a, const Tensor& b);
// Stored references of a family: "softmax.0.y0" (output), "softmax.0.dx1" (gradient of input 1),
// "add.2.i64.y0" (for other inputs, see reference_kind). Undefined if there is none.
Tensor reference(const std::string& family, const std::string& key);

}  // namespace tg::test
