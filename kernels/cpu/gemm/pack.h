// Copies of the operands in the order in which the micro-kernel reads them.
#pragma once
#include <algorithm>
#include <cstdint>

#include "tapegrad/kernels/cpu/gemm/micro_kernel.h"

namespace tg::kernels::gemm {

// rows x depth of a row-major A as [depth / kBlock][rows][kBlock]: whole pieces of A's rows move,
// no transpose. Room for rows * (depth rounded up to kBlock) values.
template <class T>
void pack_a_rows(const T* a, int64_t a_row, int rows, int64_t depth, T* to) {
  using S = Simd<T>;
  static_assert(kBlock % S::kLanes == 0);
  for (int64_t k = 0; k < depth; k += kBlock, to += rows * kBlock) {
    const int64_t width = std::min(kBlock, depth - k);
    for (int i = 0; i < rows; ++i) {
      const T* from = a + i * a_row + k;
      if (width == kBlock) {
#pragma GCC unroll 8
        for (int x = 0; x < kBlock; x += S::kLanes)
          S::store(to + i * kBlock + x, S::load(from + x));
      } else {
        std::copy_n(from, width, to + i * kBlock);
      }
    }
  }
}

// rows x depth of an A that is stored transposed, a[k * a_depth + i], as [depth][rows]. Writes up
// to two registers past rows * depth values.
template <class T>
void pack_a_columns(const T* a, int64_t a_depth, int rows, int64_t depth, T* to) {
  using S = Simd<T>;
  const int whole = (rows - 1) / S::kLanes * S::kLanes;
  const typename S::Mask mask = S::first(rows - whole);
  for (int64_t k = 0; k < depth; ++k, to += rows, a += a_depth) {
    for (int i = 0; i < whole; i += S::kLanes) S::store(to + i, S::load(a + i));
    S::store(to + whole,
             S::load(a + whole, mask));  // zeros behind it are overwritten by the next k
  }
}

// depth x columns of a row-major B as panels of [depth][kTileColumns], one after the other. Several
// panels at once, so that B is read in longer pieces.
template <class T>
void pack_b_rows(const T* b, int64_t b_row, int64_t columns, int64_t depth, T* to) {
  using S = Simd<T>;
  constexpr int64_t kColumns = kTileColumns<T>;
  constexpr int64_t kAhead = 8;  // rows
  const int64_t whole = columns / kColumns * kColumns;
  for (int64_t k = 0; k < depth; ++k, b += b_row, to += kColumns) {
    for (int64_t j = 0; j < whole; j += kColumns) {
      __builtin_prefetch(b + kAhead * b_row + j, 0, 3);
      S::store(to + j * depth, S::load(b + j));
      S::store(to + j * depth + S::kLanes, S::load(b + j + S::kLanes));
    }
    for (int64_t j = whole; j < columns; ++j) to[whole * depth + j - whole] = b[j];
  }
}

// depth x columns of a B that is stored transposed, b[j * b_column + k], as [depth][kTileColumns].
// Columns past `columns` are left as they are: the micro-kernel never reads them.
template <class T>
void pack_b_columns(const T* b, int64_t b_column, int columns, int64_t depth, T* to) {
  using S = Simd<T>;
  constexpr int kLanes = S::kLanes, kColumns = kTileColumns<T>;
  const int whole = columns / kLanes * kLanes;
  int64_t k = 0;
  for (; k + kLanes <= depth; k += kLanes) {
    for (int j = 0; j < whole; j += kLanes) {
      const T* from = b + j * b_column + k;
      S::transpose(from, b_column, to + k * kColumns + j, kColumns);
    }
    for (int j = whole; j < columns; ++j) {
      for (int x = 0; x < kLanes; ++x) to[(k + x) * kColumns + j] = b[j * b_column + k + x];
    }
  }
  for (; k < depth; ++k) {
    for (int j = 0; j < columns; ++j) to[k * kColumns + j] = b[j * b_column + k];
  }
}

}  // namespace tg::kernels::gemm
