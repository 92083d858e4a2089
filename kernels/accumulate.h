// Adding into memory that shows some places several times.
#pragma once
#include "tapegrad/kernels/dispatch.h"

namespace tg::kernels {

// y[i] += x[i] for i in row-major order; x has y's shape and dtype. Places of y may coincide: each
// addition counts.
void accumulate(Cpu, View x, MutView y);
void accumulate(Cuda, View x, MutView y);

}  // namespace tg::kernels
