#include "tapegrad/kernels/cpu/gemm/micro_kernel_body.h"

namespace tg::kernels::gemm {

void run_tile(const Tile<double>& tile) { kKernelTable<Simd<double>>.run(tile); }

}  // namespace tg::kernels::gemm
