// The matrix is cut into squares of 32 x 32. One of x and one of y, 4 KB each, lie in the
// first-level cache together.
//
// What it gains: a line that was fetched for one value is still there when its 15 neighbours are
// wanted, and only 64 pages of memory are in use at a time, for whose addresses the CPU has room.
#include <algorithm>

#include "tapegrad/kernels/cpu/lab/rungs.h"

namespace tg::kernels::lab {

void tiles(const Matrix& p) {
  constexpr int64_t kSide = 32;
  for (int64_t top = 0; top < p.rows; top += kSide) {
    const int64_t bottom = std::min(top + kSide, p.rows);
    for (int64_t left = 0; left < p.columns; left += kSide) {
      const int64_t right = std::min(left + kSide, p.columns);
      for (int64_t r = top; r < bottom; ++r)
        for (int64_t c = left; c < right; ++c) p.y[r * p.y_row + c] = p.x[c * p.x_row + r];
    }
  }
}

}  // namespace tg::kernels::lab
