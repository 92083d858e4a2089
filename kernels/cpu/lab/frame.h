// From the engine's operands to the plain problems of the rungs, for the kernels that were told to
// run one. No size may be 0.
#pragma once
#include "tapegrad/kernels/cpu/gemm/gemm.h"
#include "tapegrad/kernels/cpu/lab/rungs.h"

namespace tg::kernels::lab {

void run(Kernel<Product> rung, const gemm::Product<float>& product, const gemm::Batch& batch);
// As kernels::conv2d; f32, f16, bf16.
void run(Kernel<Images> rung, View x, View weight, View bias, MutView y,
         const Conv2dGeometry& geometry);

}  // namespace tg::kernels::lab
