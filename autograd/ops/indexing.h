// Indexing as in NumPy and PyTorch: x.index({slice(0, none, 2), 3, mask}).
#pragma once
#include <initializer_list>
#include <optional>
#include <vector>

#include "tapegrad/core/tensor.h"

namespace tg {

struct None {};
struct Ellipsis {};
inline constexpr None none{};          // in an index: a new dimension; in slice(): open end
inline constexpr Ellipsis ellipsis{};  // as many full dimensions as fit

struct Slice {
  std::optional<int64_t> start, end;
  int64_t step = 1;
};
struct Bound {  // an integer or none
  std::optional<int64_t> value;
  Bound(int64_t v) : value(v) {}
  Bound(int v) : value(v) {}
  Bound(None) {}
};
inline Slice slice(Bound start = none, Bound end = none, int64_t step = 1) {
  return {start.value, end.value, step};
}

// One entry of an index: an integer drops the dimension, a slice keeps it (both view), an integer
// or bool tensor selects (a copy); several tensors broadcast together.
class Index {
 public:
  enum class Kind : uint8_t { integer, slice, none, ellipsis, tensor };

  Index(int v) : kind(Kind::integer), integer(v) {}
  Index(int64_t v) : kind(Kind::integer), integer(v) {}
  Index(Slice s) : kind(Kind::slice), slice(s) {}
  Index(None) : kind(Kind::none) {}
  Index(Ellipsis) : kind(Kind::ellipsis) {}
  Index(const Tensor& t) : kind(Kind::tensor), tensor(t) {}

  // The member that `kind` names holds the entry.
  Kind kind;
  int64_t integer = 0;
  Slice slice;
  Tensor tensor;
};

Tensor index(const Tensor& x, const std::vector<Index>& indices);
// x[indices] = value (broadcast); with accumulate, += (each occurrence counts).
const Tensor& index_put_(const Tensor& x, const std::vector<Index>& indices, const Tensor& value,
                         bool accumulate = false);

// Rows of x along dim at the integer indices (rank 1).
Tensor index_select(const Tensor& x, int64_t dim, const Tensor& indices);
// y[i][j] = x[index[i][j]][j] for dim 0; index has x's rank. Out of range: IndexError.
Tensor gather(const Tensor& x, int64_t dim, const Tensor& index);
// x with source[i][j] added at [index[i][j]][j]; in index order (deterministic).
Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);
const Tensor& scatter_add_(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);
// The value where mask (bool, broadcast) is true; no gradient there.
Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value);
const Tensor& masked_fill_(const Tensor& x, const Tensor& mask, Scalar value);
Tensor masked_select(const Tensor& x, const Tensor& mask);  // rank 1
Tensor nonzero(const Tensor& x);                            // i64 [count, rank]
// Lower / upper triangle of the last two dimensions, the rest 0.
Tensor tril(const Tensor& x, int64_t diagonal = 0);
Tensor triu(const Tensor& x, int64_t diagonal = 0);

}  // namespace tg
