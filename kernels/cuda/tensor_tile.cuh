// A tile of a product of 16-bit matrices on tensor cores.
//
//   a block: a tile of c [128, 128] in steps of 32 over k; 4 warps of [64, 64] each
//   a warp:  4 x 8 instructions of [16, 8] a step of 16 over k, sums in registers, f32
//
// Memory: three stages of tiles in shared memory, 3 x (8 + 8) KiB, filled by copies that run beside
// the arithmetic. There is one barrier a step: it shows everybody the tile that has just come, and
// that all have finished with the one whose place is filled next. Per 16 of k a warp reads 4 KiB of
// shared memory for 32 matrix instructions, so that neither waits for the other.
#pragma once
#include "tapegrad/kernels/cuda/fragments.cuh"
#include "tapegrad/kernels/cuda/start.cuh"

namespace tg::gpu::tensor {

inline constexpr int kTile = 128, kDepth = 32, kStages = 3, kTileThreads = 128;
inline constexpr uint32_t kTileBytes = kTile * kDepth * 2, kStageBytes = 2 * kTileBytes;
inline constexpr size_t kShared = kStages * kStageBytes;
// Blocks walk 8 tiles of rows before they go on to the next columns: what they read of a and b
// together stays in the second-level cache.
inline constexpr int kGroup = 8;

// Where the part of this thread's warp begins in the tile.
__device__ inline int warp_row() { return int(threadIdx.x) / 64 * 64; }
__device__ inline int warp_column() { return int(threadIdx.x) / 32 % 2 * 64; }

// A thread's part in copying one operand: one column of 16-byte pieces, rows kRowStep apart, which
// is a whole period of the swizzle, so one pointer and one offset serve all its copies.
// kAlongK: the tile is [128][32] with k next to each other, else [32][128].
template <class T, bool kAlongK>
struct Copier {
  static constexpr int kChunks = kAlongK ? kDepth / 8 : kTile / 8;
  static constexpr int kRowStep = kTileThreads / kChunks;
  static constexpr int kCopies = kTile * kDepth / 8 / kTileThreads;
  const T* from;
  int pitch;                    // elements from row to row
  int rows_left, columns_left;  // of the matrix, from this thread's first element on
  uint32_t to;

  __device__ Copier(const T* matrix, int pitch_, int first, int others, int k, int thread)
      : pitch(pitch_) {
    const int r = thread / kChunks, chunk = thread % kChunks;
    const int row = kAlongK ? first + r : r, column = (kAlongK ? 0 : first) + chunk * 8;
    rows_left = (kAlongK ? others : k) - row;
    columns_left = (kAlongK ? k : others) - column;
    from = matrix + int64_t(row) * pitch + column;
    to = swizzled<kChunks>(r, chunk);
  }
  // The tile of this step into the stage at `stage`; then on to the next step. Past the end of the
  // matrix zeros are written and nothing is read.
  __device__ void copy(uint32_t stage) {
    const T* source = from;
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int left = i * kRowStep < rows_left ? max(0, min(8, columns_left)) : 0;
      copy16_later(stage + to + uint32_t(i * kRowStep * kChunks * 16), source, left * 2);
      source += kRowStep * pitch;
    }
    if (kAlongK) {
      from += kDepth;
      columns_left -= kDepth;
    } else {
      from += kDepth * pitch;
      rows_left -= kDepth;
    }
  }
};

struct TileOrigin {
  int row, column;
};
__device__ inline TileOrigin tile_of_block(int m, int n) {
  const int tiles_m = (m + kTile - 1) / kTile, tiles_n = (n + kTile - 1) / kTile;
  const int block = int(blockIdx.x), of_group = kGroup * tiles_n;
  const int first = block / of_group * kGroup, within = block % of_group;
  const int height = min(kGroup, tiles_m - first);
  return {(first + within % height) * kTile, within / height * kTile};
}

using Sums = float[4][8][4];

// Sums start from the bias, one value for each column: nothing is left to add when they are
// written.
template <class T>
__device__ inline void start_sums(Sums& sum, const T* bias, int64_t step, int tile_column, int n) {
#pragma unroll
  for (int j = 0; j < 8; ++j)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int column = tile_column + warp_column() + 2 * (int(threadIdx.x) % 4) + 8 * j + e;
      const float value = bias && column < n ? widen(bias[column * step]) : 0.0f;
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[i][j][e] = sum[i][j][e + 2] = value;
    }
}

// sum += the tile of a times the tile of b, over all steps. kAlongKInA: k next to each other in a,
// else m; kAlongKInB: k next to each other in b, else n. The copiers bring one step after the
// other.
template <class T, bool kAlongKInA, bool kAlongKInB, class CopyA, class CopyB>
__device__ inline void add_products(CopyA& copy_a, CopyB& copy_b, int steps, Sums& sum) {
  using F = DeviceFloat<T>;
  const int lane = int(threadIdx.x) % 32;
  const uint32_t shared = shared_address();
  uint32_t next_stage = 0;
  auto fetch = [&](int step) {
    if (step < steps) {
      copy_a.copy(shared + next_stage);
      copy_b.copy(shared + next_stage + kTileBytes);
      next_stage = next_stage == (kStages - 1) * kStageBytes ? 0 : next_stage + kStageBytes;
    }
    close_copy_group();  // an empty one too: then the number to wait for is always the same
  };

  // Where a lane reads its first matrices. The swizzle depends on the lane alone, so the next
  // piece is an exclusive or, and the next rows are a constant further.
  const uint32_t of_a = kAlongKInA
                            ? swizzled<4>(warp_row() + straight_row(lane), straight_chunk(lane))
                            : swizzled<16>(crossed_row(lane), warp_row() / 8 + crossed_chunk(lane));
  const uint32_t of_b =
      kAlongKInB ? swizzled<4>(warp_column() + crossed_row(lane), crossed_chunk(lane))
                 : swizzled<16>(straight_row(lane), warp_column() / 8 + straight_chunk(lane));

#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) fetch(s);
  uint32_t stage = shared;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    wait_for_copies<kStages - 2>();
    __syncthreads();
    fetch(step + kStages - 1);
    const uint32_t stage_b = stage + kTileBytes;
#pragma unroll
    for (int piece = 0; piece < kDepth / 16; ++piece) {
      uint32_t fa[4][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if constexpr (kAlongKInA)
          load_matrices(fa[i], stage + (of_a ^ (piece * 32)) + i * 16 * 64);
        else
          load_matrices_transposed(fa[i], stage + (of_a ^ (i * 32)) + piece * 16 * 256);
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        uint32_t fb[4];
        if constexpr (kAlongKInB)
          load_matrices(fb, stage_b + (of_b ^ (piece * 32)) + j * 16 * 64);
        else
          load_matrices_transposed(fb, stage_b + (of_b ^ (j * 32)) + piece * 16 * 256);
        const uint32_t first[2] = {fb[0], fb[1]}, second[2] = {fb[2], fb[3]};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          mma<F>(sum[i][2 * j], fa[i], first);
          mma<F>(sum[i][2 * j + 1], fa[i], second);
        }
      }
    }
    stage = stage == shared + (kStages - 1) * kStageBytes ? shared : stage + kStageBytes;
  }
  wait_for_copies<0>();
}

// Four lanes exchange their results, so that each writes 16 bytes of one row. row_at(row): where
// its first column lies, null past the end; aligned: to 16 bytes.
template <class T, class RowAt>
__device__ inline void write_sums(const Sums& sum, bool aligned, const TileOrigin& tile, int n,
                                  RowAt row_at) {
  const int t = int(threadIdx.x) % 4, g = int(threadIdx.x) % 32 / 4;
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      T* to_row = row_at(tile.row + warp_row() + g + 16 * i + 8 * e);
#pragma unroll
      for (int j = 0; j < 8; j += 4) {
        uint32_t words[4];
#pragma unroll
        for (int q = 0; q < 4; ++q)
          words[q] = pack_pair<T>(sum[i][j + q][2 * e], sum[i][j + q][2 * e + 1]);
        transpose_quad(words, t);
        const int column = tile.column + warp_column() + (j + t) * 8;
        if (!to_row) continue;
        if (aligned && column + 8 <= n) {
          store(to_row + column, Words4{words[0], words[1], words[2], words[3]});
          continue;
        }
#pragma unroll
        for (int q = 0; q < 8; ++q)
          if (column + q < n) to_row[column + q].bits = uint16_t(words[q / 2] >> (q % 2 * 16));
      }
    }
}

inline int64_t tiles_of(int64_t m, int64_t n) {
  return ((m + kTile - 1) / kTile) * ((n + kTile - 1) / kTile);
}

// What a product must lie like to be read in pieces of 16 bytes.
constexpr int64_t kMostSize = int64_t(1) << 30;   // sizes are int in the kernel
constexpr int64_t kMostPitch = int64_t(1) << 23;  // times 128 rows it is still an int

}  // namespace tg::gpu::tensor
