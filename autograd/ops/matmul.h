// Matrix products. Operands have one dtype (DTypeError otherwise): floats, or integers, which wrap
// around and have no gradient; under autocast floats are multiplied in the region's low precision.
// f16 and bf16 add up in f32. An empty inner dimension gives zeros (or the bias).
#pragma once
#include <string>
#include <vector>

#include "tapegrad/core/tensor.h"

namespace tg {

// [..,m,k] x [..,k,n] -> [..,m,n] with broadcast batch dimensions; a vector on the left counts as
// [1,k], on the right as [k,1], and that dimension is dropped again. Rank 0 raises.
Tensor matmul(const Tensor& a, const Tensor& b);
// The same for one rank only, as a check: [m,k] x [k,n]; [z,m,k] x [z,k,n]; [m,k] x [k]; [k] x [k].
Tensor mm(const Tensor& a, const Tensor& b);
Tensor bmm(const Tensor& a, const Tensor& b);
Tensor mv(const Tensor& a, const Tensor& b);
Tensor dot(const Tensor& a, const Tensor& b);
// [m] x [n] -> [m,n], all products of two elements.
Tensor outer(const Tensor& a, const Tensor& b);
// x [..,in] times weight [out,in] transposed, plus bias [out] if defined: [..,out].
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
// beta * input + alpha * a b for a [m,k], b [k,n] and an input that broadcasts to [m,n]. With beta
// 0 the input is not read: NaN in it does not come through, and it gets no gradient. Of integers
// both must be whole numbers, and the result is exact.
Tensor addmm(const Tensor& input, const Tensor& a, const Tensor& b, double beta = 1,
             double alpha = 1);
// Einstein's sum. One letter names one dimension; letters that are not in the result are summed; a
// letter that appears twice in one operand takes its diagonal; "..." stands for broadcast
// dimensions; without "->" the result has the letters that appear once, in alphabetical order.
// Sizes 1 stretch.
//   einsum("bij,bjk->bik", {a, b})   einsum("...qd,...kd->...qk", {q, k})   einsum("ii->i", {a})
// Operands are multiplied from left to right. Sums of integers keep their dtype; bool raises.
Tensor einsum(const std::string& equation, const std::vector<Tensor>& operands);

}  // namespace tg
