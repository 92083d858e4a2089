// Reading and writing the places that integer tensors name.
#pragma once
#include <span>

#include "tapegrad/core/scalar.h"
#include "tapegrad/kernels/dispatch.h"

namespace tg::kernels {

// Positions along one dimension: i64 of rank 1. `dim` is what an error calls the dimension.
struct IndexColumn {
  View values;
  int dim;
  bool from_end = true;  // negative ones count from the end; else they are errors
};

// y[b, ...] = x[column0[b], column1[b], ..., ...]: the first dimensions of x are the indexed ones,
// y has the shape [count, rest of x]. IndexError for a position outside of x, before anything is
// written.
void index(Cpu, View x, std::span<const IndexColumn> columns, MutView y);
void index(Cuda, View x, std::span<const IndexColumn> columns, MutView y);

// x[column0[b], ..., ...] = values[b, ...], or += with accumulate. In the order of b: where a
// position is named twice, the last one stays, or the sums are made in that order. values has x's
// dtype.
void index_put(Cpu, MutView x, std::span<const IndexColumn> columns, View values, bool accumulate);
void index_put(Cuda, MutView x, std::span<const IndexColumn> columns, View values, bool accumulate);

// y[i][j] = x[index[i][j]][j], for dim 0 of rank 2. index is i64 and has y's shape and x's rank;
// outside of dim it may be smaller than x. IndexError for an index outside of [0, size of dim).
void gather(Cpu, View x, int dim, View index, MutView y);
void gather(Cuda, View x, int dim, View index, MutView y);

// y[index[i][j]][j] += source[i][j], for dim 0 of rank 2; each place sums in the order of i. source
// has index's shape and y's dtype. IndexError as above, before anything is written.
void scatter_add(Cpu, MutView y, int dim, View index, View source);
void scatter_add(Cuda, MutView y, int dim, View index, View source);

}  // namespace tg::kernels
