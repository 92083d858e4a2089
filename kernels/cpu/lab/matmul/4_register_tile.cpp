// A tile of C stays in registers while the whole sum over k runs (tile.h).
//
// What it gains: C is neither loaded nor stored within the loop, and every value of A and B that is
// loaded takes part in several multiply-adds. Now arithmetic could be what takes the time. But the
// 16 values of B that belong to one k lie a whole row apart from those of the next: every step
// needs another line, on another page, and with a row length that is a power of two these lines
// fall into the same few places of the cache and push each other out.
#include <algorithm>

#include "tapegrad/kernels/cpu/lab/matmul/tile.h"

namespace tg::kernels::lab {

void register_tile(const Product& p) {
  for (int64_t j = 0; j < p.columns; j += kTileColumns) {
    for (int64_t i = 0; i < p.rows; i += kTileRows) {
      Product tile = p;
      tile.rows = std::min(kTileRows, p.rows - i);
      tile.columns = std::min(kTileColumns, p.columns - j);
      tile.a = p.a + i * p.a_row;
      tile.b = p.b + j;
      tile.c = p.c + i * p.c_row + j;
      run_tile(tile);
    }
  }
}

}  // namespace tg::kernels::lab
