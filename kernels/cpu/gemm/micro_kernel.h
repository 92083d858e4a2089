// The micro-kernel: the one loop that every product runs in. A tile of C stays in registers while
// the sum over the inner dimension runs; nothing else in the product does arithmetic.
//
//   C[i][j] = addend[i][j] + sum over s < segments, k < depth of A(s, i, k) * B(s, k, j)
//
//   A(s, i, k) = a[s * a_segment + i * a_row + k * a_depth]      any strides, rows may overlap
//   B(s, k, j) = b[s * b_segment + k * b_depth + j]              columns are contiguous
//
// Segments let one sum run over pieces that lie apart: the rows of a convolution's window, or the
// 16-wide blocks of a packed operand. Each element's sum runs over s, then k, in one chain,
// whatever tile the element falls into: cutting C into tiles in another way gives the same bits.
#pragma once
#include <cstdint>

#include "tapegrad/kernels/cpu/gemm/simd.h"

namespace tg::kernels::gemm {

// How A lies. The first works for all strides; the other two are faster because the compiler knows
// the distance between the rows of a tile.
enum class ALayout {
  strided,     // any a_row and a_depth
  transposed,  // a_row = 1
  blocked,     // a_row = kBlock, a_depth = 1: what pack_a_rows writes
};
inline constexpr int64_t kBlock = 16;

template <class T>
struct Tile {
  int rows = 0;     // 1 .. kTileRows<T>
  int columns = 0;  // 1 .. kTileColumns<T>
  ALayout layout = ALayout::strided;

  int64_t segments = 1;
  int64_t depth = 0;       // of each segment but the last
  int64_t last_depth = 0;  // of the last one; set both where they are equal

  const T* a = nullptr;
  int64_t a_row = 0, a_depth = 1, a_segment = 0;
  const T* b = nullptr;
  int64_t b_depth = 0, b_segment = 0;

  T* c = nullptr;
  int64_t c_row = 0;
  // null: C is only written, its old content never read. C itself: the product is added to C.
  // addend_row = 0: one row for all, a bias.
  const T* addend = nullptr;
  int64_t addend_row = 0;

  // Where not null, B's tile is also written here as [k][kTileColumns]; needs one segment, or
  // segments that follow each other in k. Tiles below the first then read the packed form.
  T* packed_b = nullptr;
  // Ask for C's lines before they are written: pays where C does not fit the second-level cache.
  bool prefetch_c = false;
};

void run_tile(const Tile<float>& tile);
void run_tile(const Tile<double>& tile);

}  // namespace tg::kernels::gemm
