// Matrix products.
#pragma once
#include <string>
#include <vector>

#include "tapegrad/core/tensor.h"

namespace tg {

// [..,m,k] x [..,k,n] -> [..,m,n] with broadcast batch dimensions; a vector on the left counts as
// [1,k], on the right as [k,1], and that dimension is dropped again. k = 0 gives zeros.
Tensor matmul(const Tensor& a, const Tensor& b);
// x [..,in] times weight [out,in] transposed, plus bias [out] if defined: [..,out].
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
Tensor addmm(const Tensor& bias, const Tensor& a, const Tensor& b);  // bias + a b
// Einstein's sum: einsum("bij,bjk->bik", {a, b}); "..." for broadcast batch dimensions.
Tensor einsum(const std::string& equation, const std::vector<Tensor>& operands);

}  // namespace tg
