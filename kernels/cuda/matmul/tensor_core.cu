// The product of 16-bit matrices on tensor cores.
//
//   a block: a tile of c [128, 128] in steps of 32 over k; 4 warps of [64, 64] each
//   a warp:  4 x 8 instructions of [16, 8] a step of 16 over k, sums in registers, f32
//
// Memory: three stages of tiles in shared memory, 3 x (8 + 8) KiB, filled by copies that run beside
// the arithmetic. There is one barrier a step: it shows everybody the tile that has just come, and
// that all have finished with the one whose place is filled next. Per 16 of k a warp reads 4 KiB of
// shared memory for 32 matrix instructions, so that neither waits for the other.
#include "tapegrad/kernels/cuda/fragments.cuh"
#include "tapegrad/kernels/cuda/matmul/product.h"

namespace tg::gpu {
namespace {

constexpr int kTile = 128, kDepth = 32, kStages = 3, kTileThreads = 128;
constexpr uint32_t kTileBytes = kTile * kDepth * 2, kStageBytes = 2 * kTileBytes;
// Blocks walk 8 tiles of rows before they go on to the next columns: what they read of a and b
// together stays in the second-level cache.
constexpr int kGroup = 8;

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
__device__ inline void start_sums(Sums& sum, const Matrix& bias, int64_t place, int column0,
                                  int n) {
  const T* from = reinterpret_cast<const T*>(static_cast<const char*>(bias.data) + place);
#pragma unroll
  for (int j = 0; j < 8; ++j)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int column = column0 + 8 * j + e;
      const float value = bias.data && column < n ? widen(from[column * bias.column]) : 0.0f;
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[i][j][e] = sum[i][j][e + 2] = value;
    }
}

// Four lanes exchange their results, so that each writes 16 bytes of one row.
template <class T>
__device__ inline void write_sums(const Sums& sum, T* c, bool aligned, int row0, int column0, int m,
                                  int n, int t) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int row = row0 + 16 * i + 8 * e;
#pragma unroll
      for (int j = 0; j < 8; j += 4) {
        uint32_t words[4];
#pragma unroll
        for (int q = 0; q < 4; ++q)
          words[q] = pack_pair<T>(sum[i][j + q][2 * e], sum[i][j + q][2 * e + 1]);
        transpose_quad(words, t);
        const int column = column0 + (j + t) * 8;
        if (row >= m) continue;
        T* to = c + int64_t(row) * n + column;
        if (aligned && column + 8 <= n) {
          store(to, Words4{words[0], words[1], words[2], words[3]});
          continue;
        }
#pragma unroll
        for (int q = 0; q < 8; ++q)
          if (column + q < n) to[q].bits = uint16_t(words[q / 2] >> (q % 2 * 16));
      }
    }
}

// kA: k next to each other in a, else m; kB: n next to each other in b, else k.
template <class T, bool kAlongKInA, bool kAlongKInB>
__global__ void __launch_bounds__(kTileThreads, 2) tensor_core_kernel(Product p) {
  using F = DeviceFloat<T>;
  const int m = int(p.m), n = int(p.n), k = int(p.k);
  const int thread = int(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int warp_row = warp / 2 * 64, warp_column = warp % 2 * 64;
  const TileOrigin tile = tile_of_block(m, n);
  int64_t place[4];
  find_places(p.batch, blockIdx.z, place);
  const T* a = reinterpret_cast<const T*>(static_cast<const char*>(p.a.data) + place[1]);
  const T* b = reinterpret_cast<const T*>(static_cast<const char*>(p.b.data) + place[2]);

  const uint32_t shared = shared_address();
  const int steps = (k + kDepth - 1) / kDepth;
  Copier<T, kAlongKInA> copy_a(a, int(kAlongKInA ? p.a.row : p.a.column), tile.row, m, k, thread);
  Copier<T, kAlongKInB> copy_b(b, int(kAlongKInB ? p.b.column : p.b.row), tile.column, n, k,
                               thread);
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
                            ? swizzled<4>(warp_row + straight_row(lane), straight_chunk(lane))
                            : swizzled<16>(crossed_row(lane), warp_row / 8 + crossed_chunk(lane));
  const uint32_t of_b =
      kAlongKInB ? swizzled<4>(warp_column + crossed_row(lane), crossed_chunk(lane))
                 : swizzled<16>(straight_row(lane), warp_column / 8 + straight_chunk(lane));
  const int g = lane / 4, t = lane % 4;
  Sums sum;
  start_sums<T>(sum, p.addend, place[3], tile.column + warp_column + 2 * t, n);

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

  // Found again rather than kept in registers all along: there is none to spare in the loop.
  find_places(p.batch, blockIdx.z, place);
  T* c = reinterpret_cast<T*>(static_cast<char*>(p.c) + place[0]);
  const bool aligned = n % 8 == 0 && reinterpret_cast<uintptr_t>(c) % 16 == 0;
  write_sums<T>(sum, c, aligned, tile.row + warp_row + g, tile.column + warp_column, m, n, t);
}

// One dimension without gaps, the other in steps of 16 bytes. `rows` and `columns` are sizes: a
// dimension of size 1 has no step.
bool fits(const Matrix& matrix, bool along_rows) {
  const int64_t step = along_rows ? matrix.row : matrix.column;
  const int64_t other = along_rows ? matrix.column : matrix.row;
  constexpr int64_t kMostPitch = int64_t(1) << 23;  // times 128 rows it is still an int
  return step == 1 && other >= 1 && other < kMostPitch && other % 8 == 0 && aligned16(matrix.data);
}

template <class T, bool kAlongKInA, bool kAlongKInB>
void run(const Product& p) {
  const int64_t tiles = ((p.m + kTile - 1) / kTile) * ((p.n + kTile - 1) / kTile);
  start<tensor_core_kernel<T, kAlongKInA, kAlongKInB>>(
      {dim3(unsigned(tiles), 1, unsigned(p.batch.numel)), kTileThreads, kStages * kStageBytes}, p);
}

template <class T>
void choose(const Product& p, bool a_along_k, bool b_along_k) {
  if (a_along_k) return b_along_k ? run<T, true, true>(p) : run<T, true, false>(p);
  return b_along_k ? run<T, false, true>(p) : run<T, false, false>(p);
}

}  // namespace

bool tensor_core_product(const Product& p, DType dtype) {
  constexpr int64_t kMost = int64_t(1) << 30;  // sizes are int in the kernel
  if (dtype != DType::f16 && dtype != DType::bf16) return false;
  if (p.m > kMost || p.n > kMost || p.k > kMost || p.batch.numel > 65535) return false;
  for (int d = 0; d < p.batch.rank; ++d)
    for (int operand : {1, 2})
      if (p.batch.step[operand][d] % 16 != 0 && p.batch.numel > 1) return false;
  // A whole matrix to add would need more registers than there are.
  if (p.addend.data && p.addend.row != 0) return false;
  const bool a_along_k = fits(p.a, false), b_along_k = fits(p.b, true);
  if (!a_along_k && !fits(p.a, true)) return false;
  if (!b_along_k && !fits(p.b, false)) return false;
  if (dtype == DType::f16)
    choose<Half>(p, a_along_k, b_along_k);
  else
    choose<BFloat16>(p, a_along_k, b_along_k);
  return true;
}

}  // namespace tg::gpu
