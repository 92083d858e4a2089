// The loops exchanged: x is read in order, y is written jumping.
//
// What it gains: as many lines travel as before, but whoever loads a value needs it now, while a
// store is put on a list and the CPU goes on. (Where rows are a power of two long, all of them wait
// for the same few places of the cache, and the two orders are equally bad.)
#include "tapegrad/kernels/cpu/lab/rungs.h"

namespace tg::kernels::lab {

void scatter(const Matrix& p) {
  for (int64_t c = 0; c < p.columns; ++c)
    for (int64_t r = 0; r < p.rows; ++r) p.y[r * p.y_row + c] = p.x[c * p.x_row + r];
}

}  // namespace tg::kernels::lab
