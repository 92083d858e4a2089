// Registers of 64 bytes, 32 of them, with masks (x86-64-v4). simd.h says what each member does.
#pragma once
#include "tapegrad/kernels/cpu/gemm/simd_avx2.h"

namespace tg::kernels::gemm {

struct FloatAvx512 {
  using Scalar = float;
  using Register = __m512;
  using Mask = __mmask16;
  static constexpr int kLanes = 16, kTileRows = 14;
  static Register zero() { return _mm512_setzero_ps(); }
  static Register load(const float* p) { return _mm512_loadu_ps(p); }
  static Register broadcast(const float* p) { return _mm512_set1_ps(*p); }
  static void store(float* p, Register v) { _mm512_storeu_ps(p, v); }
  static Register add(Register a, Register b) { return _mm512_add_ps(a, b); }
  static Register multiply_add(Register a, Register b, Register c) {
    return _mm512_fmadd_ps(a, b, c);
  }
  static Mask first(int count) { return static_cast<Mask>((1u << count) - 1); }
  static Register load(const float* p, Mask mask) { return _mm512_maskz_loadu_ps(mask, p); }
  static void store(float* p, Register v, Mask mask) { _mm512_mask_storeu_ps(p, mask, v); }
  static void transpose(const float* from, int64_t from_row, float* to, int64_t to_row) {
    for (int i = 0; i < 16; i += 8) {
      for (int j = 0; j < 16; j += 8) {
        transpose_8x8(from + i * from_row + j, from_row, to + j * to_row + i, to_row);
      }
    }
  }
};

struct DoubleAvx512 {
  using Scalar = double;
  using Register = __m512d;
  using Mask = __mmask8;
  static constexpr int kLanes = 8, kTileRows = 14;
  static Register zero() { return _mm512_setzero_pd(); }
  static Register load(const double* p) { return _mm512_loadu_pd(p); }
  static Register broadcast(const double* p) { return _mm512_set1_pd(*p); }
  static void store(double* p, Register v) { _mm512_storeu_pd(p, v); }
  static Register add(Register a, Register b) { return _mm512_add_pd(a, b); }
  static Register multiply_add(Register a, Register b, Register c) {
    return _mm512_fmadd_pd(a, b, c);
  }
  static Mask first(int count) { return static_cast<Mask>((1u << count) - 1); }
  static Register load(const double* p, Mask mask) { return _mm512_maskz_loadu_pd(mask, p); }
  static void store(double* p, Register v, Mask mask) { _mm512_mask_storeu_pd(p, mask, v); }
  static void transpose(const double* from, int64_t from_row, double* to, int64_t to_row) {
    for (int i = 0; i < 8; i += 4) {
      for (int j = 0; j < 8; j += 4) {
        transpose_4x4(from + i * from_row + j, from_row, to + j * to_row + i, to_row);
      }
    }
  }
};

}  // namespace tg::kernels::gemm
