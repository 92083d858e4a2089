// What x.index({...}) means: first a chain of views (integers, slices, new dimensions), then, if
// there are tensors among the entries, one selection of places.
#pragma once
#include <vector>

#include "tapegrad/autograd/ops/indexing.h"
#include "tapegrad/autograd/saved.h"

namespace tg {

// Places of a tensor v: entry b of each column is a position along one dimension of v.
struct Selection {
  struct Column {
    int dim;        // of v
    Saved indices;  // i64 [count]
    int name;       // what errors call the dimension
    bool from_end = true;
  };
  std::vector<Column> columns;
  Shape shape;  // that the index tensors broadcast to; count is its number of elements
  int at = 0;   // where these dimensions stand in the result, between those that are not indexed

  // Shape of the result of selecting from a tensor of this shape.
  Shape result_shape(const Shape& v) const;
};

struct Indexed {
  Tensor view;          // x after the views
  Selection selection;  // no columns: nothing more to do
};
Indexed resolve(const Tensor& x, const std::vector<Index>& indices);

// v[selection], a copy; differentiable.
Tensor take(const Tensor& v, const Selection& s);
// v[selection] = values (already in the result's shape, or broadcasting to it), without history.
void put(const Tensor& v, const Selection& s, const Tensor& values, bool accumulate);
// Zeros of `shape` with dy added at the selection: the gradient of take; differentiable.
Tensor put_into_zeros(const Tensor& dy, const Shape& shape, const Selection& s);
// dy with zeros at the selection; differentiable.
Tensor without(const Tensor& dy, const Selection& s);
// True where a place is named again further on, so that what is written there is lost; bool, in a
// shape that broadcasts to the result. Undefined if no place is named twice.
Tensor overwritten(const Shape& v, const Selection& s, Device device);

}  // namespace tg
