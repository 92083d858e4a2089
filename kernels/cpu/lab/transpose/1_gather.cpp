// y is written in order, x is read jumping: every value comes from another line of memory, on
// another page. 64 bytes travel for each 4 that are used, and by the time a line's next value is
// wanted, thousands of others have pushed it out of the cache.
#include "tapegrad/kernels/cpu/lab/rungs.h"

namespace tg::kernels::lab {

void gather(const Matrix& p) {
  for (int64_t r = 0; r < p.rows; ++r)
    for (int64_t c = 0; c < p.columns; ++c) p.y[r * p.y_row + c] = p.x[c * p.x_row + r];
}

}  // namespace tg::kernels::lab
