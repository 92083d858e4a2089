// Gradients of views that show only part of a tensor, or some of its elements several times. They
// are operators themselves, so that gradients of gradients flow.
#pragma once
#include "tapegrad/autograd/geometry.h"

namespace tg {

// Zeros of whole.shape laid out by whole.strides, with dy added at the places that `part` shows.
// `whole` is dense with offset 0, `part` lies inside of it.
Tensor embed(const Tensor& dy, const Geometry& whole, const Geometry& part);

// The gradient of as_strided: dy has the geometry `to`, the result that of `from`, both over one
// storage. Where `from` shows a place several times (an expanded tensor), each showing gets an
// equal share, so that whatever sums them up gets the whole.
Tensor as_strided_backward(const Tensor& dy, const Geometry& from, const Geometry& to);

}  // namespace tg
