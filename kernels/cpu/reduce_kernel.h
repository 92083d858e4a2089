// What a reduction does with contiguous elements; kernels/cpu/reduce.cpp leads it over strided
// memory.
#pragma once
#include <cstdint>

#include "tapegrad/kernels/reduce.h"

namespace tg::kernels {

// Elements (or rows) that are put together in their own type before the total goes into a wide
// value: a double for floats, an int64_t for integers.
inline constexpr int64_t kReduceBlock = 1024;
inline constexpr int64_t kReduceRows = 64;
// Rows that are read side by side.
inline constexpr int kRowsAtOnce = 8;

struct ReduceKernel {
  DType in;    // f32, f64, i32 or i64: what the functions below read
  DType wide;  // f64 or i64
  void (*start_wide)(void* wide, int64_t n);
  // wide = wide with x[0..n), n <= kReduceBlock
  void (*run)(const void* x, int64_t n, void* wide);
  void (*start_rows)(void* narrow, int64_t n);
  // narrow[j] = narrow[j] with x[0][j], ..., x[rows - 1][j], element by element; rows is 1 or
  // kRowsAtOnce, and at most kReduceRows rows come together
  void (*rows)(const void* const* x, int rows, void* narrow, int64_t n);
  // wide[j] = wide[j] with the narrow total narrow[j]
  void (*merge)(const void* narrow, void* wide, int64_t n);
  // wide[j] = wide[j] with from[j]
  void (*combine)(const void* from, void* wide, int64_t n);
};
ReduceKernel reduce_kernel(Reduce how, DType in);

}  // namespace tg::kernels
