// Products with one row, or with few rows and a transposed B: B is read once and where it lies,
// since packing it would cost as much as the product. Bound by memory, not by arithmetic.
#pragma once
#include <algorithm>
#include <cstdint>

#include "tapegrad/kernels/cpu/gemm/simd.h"

namespace tg::kernels::gemm {

// C[i][j] = addend[i][j] + sum of A[i][k] * B[k][j], with A's rows dense along k.
template <class T>
struct RowProduct {
  int64_t rows = 0, columns = 0, depth = 0;
  const T* a = nullptr;
  int64_t a_row = 0;
  const T* b = nullptr;
  int64_t b_row = 0;
  bool b_transposed = false;  // stored [columns, depth]; else [depth, columns] and one row only
  T* c = nullptr;
  int64_t c_row = 0, c_column = 1;
  const T* addend = nullptr;
  int64_t addend_row = 0, addend_column = 0;

  void put(int64_t i, int64_t j, T sum) const {
    if (addend) sum += addend[i * addend_row + j * addend_column];
    c[i * c_row + j * c_column] = sum;
  }
};

// Halves that are added until one value is left.
template <class S>
typename S::Scalar lane_sum(typename S::Register v) {
  typename S::Scalar lanes[S::kLanes];
  S::store(lanes, v);
  for (int width = S::kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

// kRows x kColumns dot products at once, each in one register of partial sums.
template <class S, int kRows, int kColumns>
void dot_tile(const RowProduct<typename S::Scalar>& p, int64_t row, int64_t column) {
  using T = typename S::Scalar;
  const T* a = p.a + row * p.a_row;
  const T* b = p.b + column * p.b_row;
  typename S::Register sum[kRows][kColumns];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kColumns; ++j) sum[i][j] = S::zero();
  }
  const auto step = [&](auto load) __attribute__((always_inline)) {
    typename S::Register av[kRows];
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) av[i] = load(a + i * p.a_row);
#pragma GCC unroll 8
    for (int j = 0; j < kColumns; ++j) {
      const typename S::Register bv = load(b + j * p.b_row);
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) sum[i][j] = S::multiply_add(av[i], bv, sum[i][j]);
    }
  };
  int64_t k = p.depth;
  for (; k >= S::kLanes; k -= S::kLanes, a += S::kLanes, b += S::kLanes) {
    step([](const T* x) { return S::load(x); });
  }
  if (k > 0) {
    const typename S::Mask mask = S::first(static_cast<int>(k));
    step([mask](const T* x) { return S::load(x, mask); });
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kColumns; ++j) p.put(row + i, column + j, lane_sum<S>(sum[i][j]));
  }
}

template <class S, int kRows>
void dot_rows(const RowProduct<typename S::Scalar>& p, int64_t row, int64_t begin, int64_t end) {
  constexpr int kColumns = 8 / kRows;  // eight sums hide the latency of the addition
  int64_t j = begin;
  for (; j + kColumns <= end; j += kColumns) dot_tile<S, kRows, kColumns>(p, row, j);
  for (; j < end; ++j) dot_tile<S, kRows, 1>(p, row, j);
}

// Columns [begin, end) of a product with a transposed B. Blocks of columns, so that their part of B
// is still in cache when the next rows come.
template <class S>
void dot_columns(const RowProduct<typename S::Scalar>& p, int64_t begin, int64_t end) {
  constexpr int64_t kBlockColumns = 16;
  for (int64_t j = begin; j < end; j += kBlockColumns) {
    const int64_t stop = std::min(end, j + kBlockColumns);
    int64_t i = 0;
    for (; i + 4 <= p.rows; i += 4) dot_rows<S, 4>(p, i, j, stop);
    for (; i + 2 <= p.rows; i += 2) dot_rows<S, 2>(p, i, j, stop);
    for (; i < p.rows; ++i) dot_rows<S, 1>(p, i, j, stop);
  }
}

// kVectors registers of columns of the only row, B row-major.
template <class S, int kVectors>
void row_tile(const RowProduct<typename S::Scalar>& p, int64_t column, typename S::Mask mask) {
  using T = typename S::Scalar;
  constexpr int64_t kSlice = 512;  // longer sums are added slice by slice, to round less
  T total[kVectors * S::kLanes] = {};
  for (int64_t from = 0; from < p.depth; from += kSlice) {
    typename S::Register sum[kVectors];
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) sum[j] = S::zero();
    const T* b = p.b + from * p.b_row + column;
    const int64_t end = std::min(p.depth, from + kSlice);
    for (int64_t k = from; k < end; ++k, b += p.b_row) {
      const typename S::Register a = S::broadcast(p.a + k);
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) {
        const T* at = b + j * S::kLanes;
        const typename S::Register bv = kVectors == 1 ? S::load(at, mask) : S::load(at);
        sum[j] = S::multiply_add(a, bv, sum[j]);
      }
    }
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) {
      T* at = total + j * S::kLanes;
      S::store(at, from == 0 ? sum[j] : S::add(S::load(at), sum[j]));
    }
  }
  const int64_t count = std::min<int64_t>(kVectors * S::kLanes, p.columns - column);
  for (int64_t j = 0; j < count; ++j) p.put(0, column + j, total[j]);
}

template <class S>
void row_columns(const RowProduct<typename S::Scalar>& p, int64_t begin, int64_t end) {
  constexpr int64_t kLanes = S::kLanes;
  int64_t j = begin;
  for (; j + 8 * kLanes <= end; j += 8 * kLanes) row_tile<S, 8>(p, j, S::first(S::kLanes));
  for (; j < end; j += kLanes) {
    row_tile<S, 1>(p, j, S::first(static_cast<int>(std::min(kLanes, end - j))));
  }
}

// Columns [begin, end) of C; a cut at multiples of kLanes changes no bit.
template <class T>
void multiply_rows(const RowProduct<T>& p, int64_t begin, int64_t end) {
  if (p.b_transposed) return dot_columns<Simd<T>>(p, begin, end);
  row_columns<Simd<T>>(p, begin, end);
}

}  // namespace tg::kernels::gemm
