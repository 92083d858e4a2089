// Copies whose source and target disagree on which dimension lies next to each other.
#pragma once
#include "tapegrad/kernels/walk.h"

namespace tg::kernels {

// Operand 0 of the walk is the target y, operand 1 the source x. If y is contiguous along the
// innermost loop and x along another one, copies tile by tile and returns true.
bool copy_transposed(const Walk& walk, const char* x, char* y, int64_t bytes);

}  // namespace tg::kernels
