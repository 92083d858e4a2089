// Before the tiles run down a panel of B, 16 columns wide, the panel is copied into one piece of
// memory, in the order in which the tiles read it.
//
// What it gains: the copy jumps from row to row once; then all tiles of the panel read it front to
// back, without gaps. A copy of n values is nothing beside the n * rows multiplications that use
// it.
//
// What is left: the longer the sum, the longer the panel. With 16384 steps it takes 1 MB, twice the
// second-level cache, and is fetched again for each tile. The engine cuts k into slices and rows
// into blocks, so that the pieces stay near, and packs while it computes.
#include <algorithm>

#include "tapegrad/kernels/cpu/lab/matmul/tile.h"
#include "tapegrad/kernels/cpu/scratch.h"

namespace tg::kernels::lab {

void packed_panels(const Product& p) {
  Scratch<float> panel(p.depth * kTileColumns);
  for (int64_t j = 0; j < p.columns; j += kTileColumns) {
    Product tile = p;
    tile.columns = std::min(kTileColumns, p.columns - j);
    tile.b = panel.data();
    tile.b_row = kTileColumns;
    for (int64_t k = 0; k < p.depth; ++k)
      std::copy_n(p.b + k * p.b_row + j, tile.columns, panel.data() + k * kTileColumns);
    for (int64_t i = 0; i < p.rows; i += kTileRows) {
      tile.rows = std::min(kTileRows, p.rows - i);
      tile.a = p.a + i * p.a_row;
      tile.c = p.c + i * p.c_row + j;
      run_tile(tile);
    }
  }
}

}  // namespace tg::kernels::lab
