// Reductions over dimensions. `dims` may be negative; keepdim leaves them with size 1. Long sums
// are blocked, so a sum of 2^24 + 2 ones is right in f32; f16 and bf16 add up in f32.
#pragma once
#include <initializer_list>
#include <utility>
#include <vector>

#include "tapegrad/core/tensor.h"

namespace tg {

// Integers and bool sum to i64. An empty sum is 0.
Tensor sum(const Tensor& x);
Tensor sum(const Tensor& x, int64_t dim, bool keepdim = false);
Tensor sum(const Tensor& x, const std::vector<int64_t>& dims, bool keepdim = false);
// What braces mean: a list of dimensions, none being all of them. Without it {} would be 0.
inline Tensor sum(const Tensor& x, std::initializer_list<int64_t> dims, bool keepdim = false) {
  return sum(x, std::vector<int64_t>(dims), keepdim);
}
// Sums x down to `shape`, undoing a broadcast.
Tensor sum_to(const Tensor& x, const Shape& shape);
// Float only (DTypeError for integers). An empty mean is NaN.
Tensor mean(const Tensor& x);
Tensor mean(const Tensor& x, int64_t dim, bool keepdim = false);
Tensor mean(const Tensor& x, const std::vector<int64_t>& dims, bool keepdim = false);
inline Tensor mean(const Tensor& x, std::initializer_list<int64_t> dims, bool keepdim = false) {
  return mean(x, std::vector<int64_t>(dims), keepdim);
}
Tensor prod(const Tensor& x);
// NaN wins. An empty reduction raises. max(x), amax, amin share the gradient evenly among ties.
Tensor max(const Tensor& x);
Tensor min(const Tensor& x);
Tensor amax(const Tensor& x, const std::vector<int64_t>& dims, bool keepdim = false);
Tensor amin(const Tensor& x, const std::vector<int64_t>& dims, bool keepdim = false);
// {values, indices (i64)}; the first occurrence; the whole gradient goes to that element.
std::pair<Tensor, Tensor> max(const Tensor& x, int64_t dim, bool keepdim = false);
std::pair<Tensor, Tensor> min(const Tensor& x, int64_t dim, bool keepdim = false);
// First occurrence; the first NaN if there is one. i64.
Tensor argmax(const Tensor& x);
Tensor argmax(const Tensor& x, int64_t dim, bool keepdim = false);
Tensor argmin(const Tensor& x);
Tensor argmin(const Tensor& x, int64_t dim, bool keepdim = false);
// Divides by n - correction; two passes. std has derivative 0 where it is 0.
Tensor var(const Tensor& x, const std::vector<int64_t>& dims = {}, int64_t correction = 1,
           bool keepdim = false);
Tensor std(const Tensor& x, const std::vector<int64_t>& dims = {}, int64_t correction = 1,
           bool keepdim = false);
Tensor logsumexp(const Tensor& x, int64_t dim, bool keepdim = false);
Tensor cumsum(const Tensor& x, int64_t dim);
// (sum |x|^p)^(1/p); p may be infinity. All dimensions if `dims` is empty. Gradient 0 at 0.
Tensor norm(const Tensor& x, double p = 2, const std::vector<int64_t>& dims = {},
            bool keepdim = false);
// Of truth values; bool.
Tensor any(const Tensor& x);
Tensor all(const Tensor& x);

}  // namespace tg
