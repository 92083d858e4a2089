// The body of the micro-kernel and the table of its variants; included only by the files that
// instantiate it (micro_kernel_f32.cpp, micro_kernel_f64.cpp), since the variants take a while to
// compile.
#pragma once
#include <utility>

#include "tapegrad/kernels/cpu/gemm/micro_kernel.h"

namespace tg::kernels::gemm {

// kVectors registers of columns (1 or 2); kPartial: the last of them is filled up to `columns`
// only; kPack: B is written to tile.packed_b on the way.
template <class S, int kRows, int kVectors, bool kPartial, ALayout kLayout, bool kPack>
void micro_kernel(const Tile<typename S::Scalar>& tile) {
  using T = typename S::Scalar;
  using Register = typename S::Register;
  constexpr int kLanes = S::kLanes;
  constexpr int kPrefetchSteps = 24;  // how far B is asked for while it is packed
  constexpr int kLine = 64 / sizeof(T);
  const typename S::Mask mask = S::first(tile.columns - kLanes * (kVectors - 1));
  // Strides of A in bytes: rows are addressed as base + {0, 1, 2, 3, 4} * stride from up to three
  // bases, forms that the CPU's addressing computes for nothing.
  const int64_t row = tile.a_row * int64_t{sizeof(T)}, row3 = 3 * row;
  const int64_t step = (kLayout == ALayout::blocked ? 1 : tile.a_depth) * int64_t{sizeof(T)};

  Register sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) sum[i][j] = S::zero();
  }

  const T* a_segment = tile.a;
  const T* b_segment = tile.b;
  T* packed = tile.packed_b;
  const T* c_ahead = tile.c;
  int rows_ahead = tile.prefetch_c ? kRows : 0;
  for (int64_t s = tile.segments; s > 0; --s) {
    // A few rows of C for each segment, so that the requests spread over the loop.
    for (int x = 0; x < 4 && rows_ahead > 0; ++x, --rows_ahead, c_ahead += tile.c_row) {
      __builtin_prefetch(c_ahead, 1, 3);
      if (kVectors * kLanes > kLine) __builtin_prefetch(c_ahead + kLine, 1, 3);
    }
    const char* a0 = reinterpret_cast<const char*>(a_segment);
    const char* a1 = a0 + 5 * row;
    const char* a2 = a1 + 5 * row;
    const T* b = b_segment;
    for (int64_t k = s == 1 ? tile.last_depth : tile.depth; k > 0; --k) {
      Register bv[kVectors];
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) {
        bv[j] =
            kPartial && j == kVectors - 1 ? S::load(b + kLanes * j, mask) : S::load(b + kLanes * j);
        if (kPack) S::store(packed + kLanes * j, bv[j]);
      }
      if (kPack) {
        packed += 2 * kLanes;
        __builtin_prefetch(b + kPrefetchSteps * tile.b_depth, 0, 3);
        if (kVectors * kLanes > kLine) {
          __builtin_prefetch(b + kPrefetchSteps * tile.b_depth + kLine, 0, 3);
        }
      }
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const char* base = i < 5 ? a0 : i < 10 ? a1 : a2;
        const int64_t offset = i % 5 == 3 ? row3 : i % 5 * row;
        const T* at = reinterpret_cast<const T*>(base + offset);
        if (kLayout == ALayout::transposed) at = reinterpret_cast<const T*>(a0) + i;
        if (kLayout == ALayout::blocked) at = reinterpret_cast<const T*>(a0) + i * kBlock;
        const Register av = S::broadcast(at);
#pragma GCC unroll 2
        for (int j = 0; j < kVectors; ++j) sum[i][j] = S::multiply_add(av, bv[j], sum[i][j]);
      }
      a0 += step;
      if (kLayout == ALayout::strided && kRows > 5) a1 += step;
      if (kLayout == ALayout::strided && kRows > 10) a2 += step;
      b += tile.b_depth;
    }
    a_segment += tile.a_segment;
    b_segment += tile.b_segment;
  }

  T* c = tile.c;
  const T* addend = tile.addend;
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) {
      Register v = sum[i][j];
      if (kPartial && j == kVectors - 1) {
        if (addend) v = S::add(v, S::load(addend + kLanes * j, mask));
        S::store(c + kLanes * j, v, mask);
      } else {
        if (addend) v = S::add(v, S::load(addend + kLanes * j));
        S::store(c + kLanes * j, v);
      }
    }
    c += tile.c_row;
    if (addend) addend += tile.addend_row;
  }
}

template <class S>
class KernelTable {
 public:
  using Kernel = void (*)(const Tile<typename S::Scalar>&);

  constexpr KernelTable() { fill(std::make_integer_sequence<int, S::kTileRows>{}); }

  void run(const Tile<typename S::Scalar>& tile) const {
    const int vectors = tile.columns > S::kLanes;
    const bool partial = tile.columns < 2 * S::kLanes;  // also one full register: rare
    const int width = partial ? vectors : 2;
    kernels_[static_cast<int>(tile.layout)][tile.packed_b != nullptr][width][tile.rows](tile);
  }

 private:
  template <int... rows>
  constexpr void fill(std::integer_sequence<int, rows...>) {
    (fill_rows<rows + 1>(), ...);
  }
  template <int kRows>
  constexpr void fill_rows() {
    fill_layout<kRows, ALayout::strided, false>();
    fill_layout<kRows, ALayout::strided, true>();
    fill_layout<kRows, ALayout::transposed, false>();
    fill_layout<kRows, ALayout::transposed, true>();
    fill_layout<kRows, ALayout::blocked, false>();
    fill_layout<kRows, ALayout::blocked, true>();
  }
  template <int kRows, ALayout kLayout, bool kPack>
  constexpr void fill_layout() {
    Kernel(&row)[3][S::kTileRows + 1] = kernels_[static_cast<int>(kLayout)][kPack];
    row[0][kRows] = micro_kernel<S, kRows, 1, true, kLayout, kPack>;
    row[1][kRows] = micro_kernel<S, kRows, 2, true, kLayout, kPack>;
    row[2][kRows] = micro_kernel<S, kRows, 2, false, kLayout, kPack>;
  }

  Kernel kernels_[3][2][3][S::kTileRows + 1] = {};  // [layout][packs][width][rows]
};

template <class S>
constexpr KernelTable<S> kKernelTable{};

}  // namespace tg::kernels::gemm
