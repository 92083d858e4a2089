// Helpers of the kernels that multiply on tensor cores: tiles in shared memory without bank
// conflicts, pairs of 16-bit floats, and results that change places between lanes.
#pragma once
#include "tapegrad/kernels/cuda/convert.cuh"

namespace tg::gpu {

// The type that the warp's matrix instruction knows for a storage type.
template <class T>
using DeviceFloat = std::conditional_t<std::is_same_v<T, Half>, __half, __nv_bfloat16>;

// Two values side by side in one register, the first in the lower half.
template <class T>
__device__ inline uint32_t pack_pair(float low, float high) {
  return uint32_t(narrow<T>(low).bits) | uint32_t(narrow<T>(high).bits) << 16;
}

// A tile in shared memory has rows of kChunks pieces of 16 bytes. ldmatrix reads eight neighbouring
// rows at one column of pieces, and a copy writes one row's pieces one after the other; both must
// meet eight different groups of banks. So the columns of a row are exchanged by an exclusive or:
//   kChunks = 4  (rows of 64 bytes, two share a line of 128): with bits of row / 2
//   kChunks = 16 (rows of 256 bytes): with bits of the row
template <int kChunks>
__device__ inline uint32_t swizzled(int row, int chunk) {  // in bytes from the start of the tile
  static_assert(kChunks == 4 || kChunks == 16);
  const int flip = kChunks == 4 ? (row >> 1) & 3 : row & 7;
  return uint32_t((row * kChunks + (chunk ^ flip)) * 16);
}

// Which row and piece of a tile a lane names to load_matrices, for four matrices that make
//   an operand a, stored [m][k], plain, or an operand b, stored [k][n], transposed: straight
//   an operand a, stored [k][m], transposed, or an operand b, stored [n][k], plain: crossed
__device__ inline int straight_row(int lane) { return lane & 15; }
__device__ inline int straight_chunk(int lane) { return lane >> 4; }
__device__ inline int crossed_row(int lane) { return (lane & 7) + ((lane >> 4) << 3); }
__device__ inline int crossed_chunk(int lane) { return (lane >> 3) & 1; }

// words[i] of lane t of four lanes becomes the old words[t] of lane i. A lane holds two columns of
// four tiles; afterwards eight columns of one, which is a piece of 16 bytes.
__device__ inline void transpose_quad(uint32_t (&words)[4], int t) {
  const bool odd = t & 1, upper = t & 2;
  uint32_t a = __shfl_xor_sync(0xffffffffu, odd ? words[0] : words[1], 1);
  uint32_t b = __shfl_xor_sync(0xffffffffu, odd ? words[2] : words[3], 1);
  (odd ? words[0] : words[1]) = a;
  (odd ? words[2] : words[3]) = b;
  a = __shfl_xor_sync(0xffffffffu, upper ? words[0] : words[2], 2);
  b = __shfl_xor_sync(0xffffffffu, upper ? words[1] : words[3], 2);
  (upper ? words[0] : words[2]) = a;
  (upper ? words[1] : words[3]) = b;
}

}  // namespace tg::gpu
