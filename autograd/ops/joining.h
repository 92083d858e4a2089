// Putting together and taking apart.
#pragma once
#include <initializer_list>
#include <vector>

#include "tapegrad/core/tensor.h"

namespace tg {

// Along an existing dim; dtypes are promoted. Raises for an empty list.
Tensor cat(const std::vector<Tensor>& tensors, int64_t dim = 0);
// Along a new dim; equal shapes.
Tensor stack(const std::vector<Tensor>& tensors, int64_t dim = 0);
// Views of `size` elements along dim (the last may be smaller), or of the given sizes.
std::vector<Tensor> split(const Tensor& x, int64_t size, int64_t dim = 0);
std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int64_t dim = 0);
// What braces mean: a list of sizes, also where it has one.
inline std::vector<Tensor> split(const Tensor& x, std::initializer_list<int64_t> sizes,
                                 int64_t dim = 0) {
  return split(x, std::vector<int64_t>(sizes), dim);
}
std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t dim = 0);

}  // namespace tg
