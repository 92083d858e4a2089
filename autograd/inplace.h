// In-place operators on views and on memory that others see too.
#pragma once
#include "tapegrad/autograd/node.h"

namespace tg {

// True unless every element surely has a place of its own.
bool may_overlap_itself(const Shape& shape, const Shape& strides);
// True if x and y share memory, unless they show exactly the same elements in the same order.
bool partly_overlap(const Tensor& x, const Tensor& y);
// The node that makes `base` out of its old value when `inner` (an in-place operator) has written
// through `view`: what flows into the view's places goes through inner, the rest passes by.
Ref<Node> write_through_view(Ref<Node> inner, const Tensor& base, const Tensor& view);

}  // namespace tg
