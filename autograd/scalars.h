// What an operator checks of a number before it is written into a tensor.
#pragma once
#include "tapegrad/core/scalar.h"

namespace tg {

// ValueError if an integer dtype cannot hold the value (NaN, or out of its range). A fraction is
// cut off, as in a cast.
void check_fits(Scalar value, DType dtype);

}  // namespace tg
