#include "tapegrad/kernels/cpu/transpose.h"

#include <algorithm>

#include "tapegrad/core/parallel.h"
#include "tapegrad/kernels/cpu/gemm/simd.h"
#include "tapegrad/kernels/cpu/grain.h"
#include "tapegrad/kernels/cpu/lab/rungs.h"

namespace tg::kernels {

namespace {

// A tile of source and one of target fit the first-level cache together, and few pages are open.
constexpr int64_t kTile = 64;

// y[r][c] = x[c][r] for r < rows, c < columns; both dense along their second index, the first
// index is `x_step` and `y_step` elements apart.
template <class T>
void transpose_tile(const T* x, int64_t x_step, T* y, int64_t y_step, int64_t rows,
                    int64_t columns) {
  int64_t blocked_rows = 0, blocked_columns = 0;
  if constexpr (sizeof(T) >= 4) {  // square blocks in registers, which only move bits
    using Simd = gemm::Simd<T>;
    constexpr int64_t n = Simd::kLanes;
    blocked_rows = rows / n * n;
    blocked_columns = columns / n * n;
    for (int64_t r = 0; r < blocked_rows; r += n)
      for (int64_t c = 0; c < blocked_columns; c += n)
        Simd::transpose(x + c * x_step + r, x_step, y + r * y_step + c, y_step);
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = r < blocked_rows ? blocked_columns : 0; c < columns; ++c)
      y[r * y_step + c] = x[c * x_step + r];
}

// What is left of a walk when loop `along` and the innermost one are taken out.
Walk outer_loops(const Walk& w, int along) {
  Walk outer;
  outer.rank = 0;
  outer.numel = 1;
  for (int d = 0; d + 1 < w.rank; ++d) {
    if (d == along) continue;
    outer.size[outer.rank] = w.size[d];
    outer.numel *= w.size[d];
    for (int k = 0; k < 2; ++k) outer.step[k][outer.rank] = w.step[k][d];
    ++outer.rank;
  }
  if (outer.rank == 0) {
    outer.rank = 1;
    outer.size[0] = 1;
    outer.step[0][0] = outer.step[1][0] = 0;
  }
  return outer;
}

// The lab's rung takes a whole matrix at a time.
void copy_by(lab::Kernel<lab::Matrix> rung, const Walk& w, int along, const char* x, char* y) {
  constexpr int64_t kBytes = sizeof(float);
  const int inner = w.rank - 1;
  const Walk outer = outer_loops(w, along);
  Position<2> at(outer, 0);
  for (int64_t i = 0; i < outer.numel; ++i, at.advance(1))
    rung({w.size[along], w.size[inner], reinterpret_cast<const float*>(x + at.offset[1]),
          w.step[1][inner] / kBytes, reinterpret_cast<float*>(y + at.offset[0]),
          w.step[0][along] / kBytes});
}

template <class T>
void copy_typed(const Walk& w, int along, const char* x, char* y) {
  const int inner = w.rank - 1;
  Walk outer = outer_loops(w, along);
  int64_t rows = w.size[along], columns = w.size[inner];
  int64_t x_step = w.step[1][inner] / int64_t(sizeof(T));
  int64_t y_step = w.step[0][along] / int64_t(sizeof(T));
  int64_t strips = (rows + kTile - 1) / kTile;
  int64_t grain = std::max<int64_t>(1, kElementGrain / (kTile * columns));
  parallel_for(outer.numel * strips, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Position<2> at(outer, i / strips);
      int64_t row = i % strips * kTile, n = std::min(kTile, rows - row);
      const T* from = reinterpret_cast<const T*>(x + at.offset[1]) + row;
      T* to = reinterpret_cast<T*>(y + at.offset[0]) + row * y_step;
      for (int64_t c = 0; c < columns; c += kTile)
        transpose_tile(from + c * x_step, x_step, to + c, y_step, n, std::min(kTile, columns - c));
    }
  });
}

}  // namespace

bool copy_transposed(const Walk& w, const char* x, char* y, int64_t bytes) {
  if (w.rank < 2 || w.inner_step(0) != bytes || w.inner_step(1) == bytes || w.inner_step(1) == 0 ||
      w.inner() < 4)
    return false;
  for (int d = 0; d + 1 < w.rank; ++d) {
    if (w.step[1][d] != bytes || w.size[d] < 4) continue;
    const auto rung = lab::chosen_rung<lab::Matrix>();
    if (bytes == 4 && rung) [[unlikely]]
      copy_by(rung, w, d, x, y);
    else if (bytes == 4)
      copy_typed<float>(w, d, x, y);
    else if (bytes == 8)
      copy_typed<double>(w, d, x, y);
    else if (bytes == 2)
      copy_typed<uint16_t>(w, d, x, y);
    else
      copy_typed<uint8_t>(w, d, x, y);
    return true;
  }
  return false;
}

}  // namespace tg::kernels
