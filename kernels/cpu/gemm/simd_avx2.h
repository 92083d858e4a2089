// Registers of 32 bytes with fused multiply-add (x86-64-v3). simd.h says what each member does.
#pragma once
#include <immintrin.h>

#include <cstdint>

namespace tg::kernels::gemm {

// One step of a float transpose: the 8 x 8 block at `from` goes to `to` with rows and columns
// exchanged. Pairs, then quads, then the two 16-byte halves change places.
inline void transpose_8x8(const float* from, int64_t from_row, float* to, int64_t to_row) {
  __m256 row[8], pair[8], quad[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) row[i] = _mm256_loadu_ps(from + i * from_row);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    pair[2 * i] = _mm256_unpacklo_ps(row[2 * i], row[2 * i + 1]);
    pair[2 * i + 1] = _mm256_unpackhi_ps(row[2 * i], row[2 * i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    quad[i] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0x44);
    quad[i + 1] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0xee);
    quad[i + 2] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0x44);
    quad[i + 3] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(to + i * to_row, _mm256_permute2f128_ps(quad[i], quad[4 + i], 0x20));
    _mm256_storeu_ps(to + (4 + i) * to_row, _mm256_permute2f128_ps(quad[i], quad[4 + i], 0x31));
  }
}

inline void transpose_4x4(const double* from, int64_t from_row, double* to, int64_t to_row) {
  __m256d row[4], pair[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) row[i] = _mm256_loadu_pd(from + i * from_row);
#pragma GCC unroll 2
  for (int i = 0; i < 4; i += 2) {
    pair[i] = _mm256_unpacklo_pd(row[i], row[i + 1]);
    pair[i + 1] = _mm256_unpackhi_pd(row[i], row[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    _mm256_storeu_pd(to + i * to_row, _mm256_permute2f128_pd(pair[i], pair[2 + i], 0x20));
    _mm256_storeu_pd(to + (2 + i) * to_row, _mm256_permute2f128_pd(pair[i], pair[2 + i], 0x31));
  }
}

struct FloatAvx2 {
  using Scalar = float;
  using Register = __m256;
  struct Mask {
    __m256i bits;
    int count;
  };
  static constexpr int kLanes = 8, kTileRows = 6;
  static Register zero() { return _mm256_setzero_ps(); }
  static Register load(const float* p) { return _mm256_loadu_ps(p); }
  static Register broadcast(const float* p) { return _mm256_broadcast_ss(p); }
  static void store(float* p, Register v) { _mm256_storeu_ps(p, v); }
  static Register add(Register a, Register b) { return _mm256_add_ps(a, b); }
  static Register multiply_add(Register a, Register b, Register c) {
    return _mm256_fmadd_ps(a, b, c);
  }
  static Mask first(int count) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return {_mm256_cmpgt_epi32(_mm256_set1_epi32(count), lane), count};
  }
  static Register load(const float* p, Mask mask) { return _mm256_maskload_ps(p, mask.bits); }
  // In pieces of 4, 2 and 1: the masked store of this instruction set is slow on several CPUs.
  static void store(float* p, Register v, Mask mask) {
    if (mask.count >= 8) return store(p, v);
    __m128 part = _mm256_castps256_ps128(v);
    if (mask.count & 4) {
      _mm_storeu_ps(p, part);
      part = _mm256_extractf128_ps(v, 1);
      p += 4;
    }
    if (mask.count & 2) {
      _mm_storel_pi(reinterpret_cast<__m64*>(p), part);
      part = _mm_movehl_ps(part, part);
      p += 2;
    }
    if (mask.count & 1) _mm_store_ss(p, part);
  }
  static void transpose(const float* from, int64_t from_row, float* to, int64_t to_row) {
    transpose_8x8(from, from_row, to, to_row);
  }
};

struct DoubleAvx2 {
  using Scalar = double;
  using Register = __m256d;
  struct Mask {
    __m256i bits;
    int count;
  };
  static constexpr int kLanes = 4, kTileRows = 6;
  static Register zero() { return _mm256_setzero_pd(); }
  static Register load(const double* p) { return _mm256_loadu_pd(p); }
  static Register broadcast(const double* p) { return _mm256_broadcast_sd(p); }
  static void store(double* p, Register v) { _mm256_storeu_pd(p, v); }
  static Register add(Register a, Register b) { return _mm256_add_pd(a, b); }
  static Register multiply_add(Register a, Register b, Register c) {
    return _mm256_fmadd_pd(a, b, c);
  }
  static Mask first(int count) {
    const __m256i lane = _mm256_setr_epi64x(0, 1, 2, 3);
    return {_mm256_cmpgt_epi64(_mm256_set1_epi64x(count), lane), count};
  }
  static Register load(const double* p, Mask mask) { return _mm256_maskload_pd(p, mask.bits); }
  static void store(double* p, Register v, Mask mask) {
    if (mask.count >= 4) return store(p, v);
    __m128d part = _mm256_castpd256_pd128(v);
    if (mask.count & 2) {
      _mm_storeu_pd(p, part);
      part = _mm256_extractf128_pd(v, 1);
      p += 2;
    }
    if (mask.count & 1) _mm_store_sd(p, part);
  }
  static void transpose(const double* from, int64_t from_row, double* to, int64_t to_row) {
    transpose_4x4(from, from_row, to, to_row);
  }
};

}  // namespace tg::kernels::gemm
