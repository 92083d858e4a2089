// Registers of 16 bytes in the compilers' own vector type: works for every CPU, and is what a build
// without AVX2 gets. Multiply and add round separately here. simd.h says what each member does.
#pragma once
#include <cstdint>
#include <cstring>

namespace tg::kernels::gemm {

template <class T>
struct Portable {
  using Scalar = T;
  using Register [[gnu::vector_size(16)]] = T;
  using Mask = int;
  static constexpr int kLanes = 16 / sizeof(T), kTileRows = 6;
  static Register zero() { return Register{}; }
  static Register load(const T* p) {
    Register v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static Register broadcast(const T* p) { return Register{} + *p; }
  static void store(T* p, Register v) { std::memcpy(p, &v, sizeof v); }
  static Register add(Register a, Register b) { return a + b; }
  static Register multiply_add(Register a, Register b, Register c) { return a * b + c; }
  static Mask first(int count) { return count; }
  static Register load(const T* p, Mask count) {
    Register v{};
    for (int i = 0; i < count; ++i) v[i] = p[i];
    return v;
  }
  static void store(T* p, Register v, Mask count) {
    for (int i = 0; i < count; ++i) p[i] = v[i];
  }
  static void transpose(const T* from, int64_t from_row, T* to, int64_t to_row) {
    for (int i = 0; i < kLanes; ++i) {
      for (int j = 0; j < kLanes; ++j) to[j * to_row + i] = from[i * from_row + j];
    }
  }
};

}  // namespace tg::kernels::gemm
