// The same three loops with the two inner ones exchanged: a whole row of C grows by one row of B
// after the other.
//
// What it gains: the innermost loop walks along rows, so every line of memory is used to its end
// and the CPU fetches the next one before it is asked for. Neighbouring additions belong to
// different sums and need not wait for each other. The additions to one element come in the same
// order as before: not a bit of the result changes.
#include <algorithm>

#include "tapegrad/kernels/cpu/lab/rungs.h"

namespace tg::kernels::lab {

void row_order(const Product& p) {
  for (int64_t i = 0; i < p.rows; ++i) {
    float* c = p.c + i * p.c_row;
    std::fill_n(c, p.columns, 0.0f);
    for (int64_t k = 0; k < p.depth; ++k) {
      const float a = p.a[i * p.a_row + k];
      const float* b = p.b + k * p.b_row;
      for (int64_t j = 0; j < p.columns; ++j) c[j] += a * b[j];
    }
  }
}

}  // namespace tg::kernels::lab
