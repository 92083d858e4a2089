// The tile of the upper rungs: up to 6 rows by 2 registers of C (14 by 2 with AVX-512) that stay in
// registers while the sum over k runs. For each k, two registers of B are loaded and one value of A
// per row is spread over a register: 8 loads for 12 multiply-adds, and no store at all.
#pragma once
#include <array>
#include <utility>

#include "tapegrad/kernels/cpu/gemm/simd.h"
#include "tapegrad/kernels/cpu/lab/rungs.h"

namespace tg::kernels::lab {

using Simd = gemm::Simd<float>;
inline constexpr int64_t kTileRows = Simd::kTileRows, kTileColumns = 2 * Simd::kLanes;

// kRows = t.rows, and kWhole, all columns there, are known to the compiler, so that `sum` can live
// in registers.
template <int kRows, bool kWhole>
void run_rows(const Product& t) {
  const int64_t first = kWhole || t.columns > Simd::kLanes ? Simd::kLanes : t.columns;
  const bool both = t.columns > first;
  const Simd::Mask left = Simd::first(int(first)),
                   right = Simd::first(both ? int(t.columns - first) : 1);
  const auto load = [&](const float* from, int j) {
    if (kWhole) return Simd::load(from + j * Simd::kLanes);
    if (j == 0) return Simd::load(from, left);
    return both ? Simd::load(from + Simd::kLanes, right) : Simd::zero();
  };
  Simd::Register sum[kRows][2];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) sum[i][0] = sum[i][1] = Simd::zero();
  for (int64_t k = 0; k < t.depth; ++k) {
    const Simd::Register b0 = load(t.b + k * t.b_row, 0), b1 = load(t.b + k * t.b_row, 1);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const Simd::Register a = Simd::broadcast(t.a + i * t.a_row + k);
      sum[i][0] = Simd::multiply_add(a, b0, sum[i][0]);
      sum[i][1] = Simd::multiply_add(a, b1, sum[i][1]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    float* c = t.c + i * t.c_row;
    if (kWhole) {
      Simd::store(c, sum[i][0]);
      Simd::store(c + Simd::kLanes, sum[i][1]);
    } else {
      Simd::store(c, sum[i][0], left);
      if (both) Simd::store(c + Simd::kLanes, sum[i][1], right);
    }
  }
}

// A product no larger than a tile: one function for each number of rows.
inline void run_tile(const Product& t) {
  using Run = Kernel<Product>;
  static constexpr auto kTable = []<int... kRows>(std::integer_sequence<int, kRows...>) {
    return std::array<std::array<Run, 2>, sizeof...(kRows)>{
        {{run_rows<kRows + 1, false>, run_rows<kRows + 1, true>}...}};
  }
  (std::make_integer_sequence<int, int(kTileRows)>{});
  kTable[size_t(t.rows - 1)][t.columns == kTileColumns](t);
}

}  // namespace tg::kernels::lab
