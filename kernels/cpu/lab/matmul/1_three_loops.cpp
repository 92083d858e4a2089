// The formula as it stands. Each element of C is summed up to its end before the next one begins.
//
// What it costs: B is walked down a column, so every value comes from another line of memory; 64
// bytes travel for each 4 that are used. And each addition waits for the one before it, 3 to 4
// cycles, though the CPU could begin two in every cycle.
#include "tapegrad/kernels/cpu/lab/rungs.h"

namespace tg::kernels::lab {

void three_loops(const Product& p) {
  for (int64_t i = 0; i < p.rows; ++i) {
    for (int64_t j = 0; j < p.columns; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < p.depth; ++k) sum += p.a[i * p.a_row + k] * p.b[k * p.b_row + j];
      p.c[i * p.c_row + j] = sum;
    }
  }
}

}  // namespace tg::kernels::lab
