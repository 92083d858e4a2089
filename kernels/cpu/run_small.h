// Elementwise kernels on a handful of elements, where planning loops would cost more than the work.
#pragma once
#include "tapegrad/kernels/cpu/run_kernel.h"

namespace tg::kernels {

// If y is contiguous and small: computes it and returns true.
bool run_small(const RunKernel& kernel, std::span<const View> in, const MutView& y);

}  // namespace tg::kernels
