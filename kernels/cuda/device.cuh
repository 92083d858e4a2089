// The one header of device code. nvcc compiles it to the instructions of a GPU; a host compiler, in
// the emulated flavour, to the functions of kernels/simt that do the same on the CPU.
//
// Rules for who writes kernels, which both compilers keep: launch through kernels/cuda/launch.cuh,
// never <<<>>>; dynamic shared memory through dynamic_shared<T>(), never a raw extern; no inline
// assembly outside of this header.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#ifndef __CUDACC__
// Not <cmath>: as for nvcc, exp(float) without std:: must be a float and not go by way of double.
#include <math.h>

#include "tapegrad/kernels/simt/atomics.h"
#include "tapegrad/kernels/simt/builtins.h"
#include "tapegrad/kernels/simt/collectives.h"
#include "tapegrad/kernels/simt/intrinsics.h"
#include "tapegrad/kernels/simt/tensor_core.h"
#endif

namespace tg::gpu {

// Four words that move as one piece of 16 bytes.
struct alignas(16) Words4 {
  uint32_t x, y, z, w;
};

#ifdef __CUDACC__

// One symbol for every kernel: nvcc takes no second one of another type.
template <class T>
__device__ __forceinline__ T* dynamic_shared() {
  extern __shared__ __align__(128) unsigned char all_dynamic_shared_memory[];
  return reinterpret_cast<T*>(all_dynamic_shared_memory);
}

// A V from, or to, memory that is aligned for it: one instruction.
template <class V, class T>
__device__ __forceinline__ V load(const T* p) {
  return *reinterpret_cast<const V*>(p);
}
template <class V, class T>
__device__ __forceinline__ void store(T* p, V value) {
  *reinterpret_cast<V*>(p) = value;
}

// The start of dynamic shared memory as the instructions below count: half the registers of a
// pointer, and a swizzle is one exclusive or.
__device__ __forceinline__ uint32_t shared_address() {
  return static_cast<uint32_t>(__cvta_generic_to_shared(dynamic_shared<unsigned char>()));
}

// Copies to shared memory beside the arithmetic: the first `bytes` of 16 (or 4), then zeros.
__device__ __forceinline__ void copy16_later(uint32_t shared, const void* global, int bytes = 16) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared), "l"(global),
               "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void copy4_later(uint32_t shared, const void* global, int bytes = 4) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(shared), "l"(global),
               "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void close_copy_group() {
  asm volatile("cp.async.commit_group;\n" ::: "memory");
}
// Until at most kGroups groups of this thread are still on their way.
template <int kGroups>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kGroups) : "memory");
}

// d [16,8] += a [16,16] b [16,8] by a whole warp; fragments as in kernels/simt/tensor_core.h.
template <class T>
__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if constexpr (__is_same(T, __nv_bfloat16))
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// Four 8 x 8 matrices of 16-bit values; lane l names row l % 8 of matrix l / 8.
__device__ __forceinline__ void load_matrices(uint32_t (&words)[4], uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(shared)
               : "memory");
}
__device__ __forceinline__ void load_matrices_transposed(uint32_t (&words)[4], uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(shared)
               : "memory");
}

#else

template <class T>
T* dynamic_shared() {
  return reinterpret_cast<T*>(simt::dynamic_shared());
}

template <class V, class T>
V load(const T* p, simt::Place place = simt::Place::here()) {
  if (reinterpret_cast<uintptr_t>(p) % sizeof(V)) simt::fault("misaligned vector load", place);
  V value;
  std::memcpy(static_cast<void*>(&value), p, sizeof value);
  return value;
}
template <class V, class T>
void store(T* p, V value, simt::Place place = simt::Place::here()) {
  if (reinterpret_cast<uintptr_t>(p) % sizeof(V)) simt::fault("misaligned vector store", place);
  std::memcpy(static_cast<void*>(p), &value, sizeof value);
}

inline uint32_t shared_address() { return 0; }

inline void copy16_later(uint32_t shared, const void* global, int bytes = 16,
                         simt::Place place = simt::Place::here()) {
  if (bytes && reinterpret_cast<uintptr_t>(global) % 16)
    simt::fault("cp.async: misaligned address of global memory", place);
  simt::copy_later(simt::shared_at(shared, 16, "cp.async", place), global, bytes, 16);
}
inline void copy4_later(uint32_t shared, const void* global, int bytes = 4,
                        simt::Place place = simt::Place::here()) {
  simt::copy_later(simt::shared_at(shared, 4, "cp.async", place), global, bytes, 4);
}
inline void close_copy_group() { simt::close_copy_group(); }
template <int kGroups>
void wait_for_copies() {
  simt::wait_for_copies(kGroups);
}

template <class T>
void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
         simt::Place place = simt::Place::here()) {
  simt::MmaFragments fragments{d, a, b};
  simt::warp_meeting(~0u, simt::mma_16x8x16<T>, &fragments, "mma.m16n8k16", place);
}
inline void load_matrices(uint32_t (&words)[4], uint32_t shared,
                          simt::Place place = simt::Place::here()) {
  simt::LoadedMatrices own{words, simt::shared_at(shared, 16, "ldmatrix", place)};
  simt::warp_meeting(~0u, simt::load_matrices, &own, "ldmatrix", place);
}
inline void load_matrices_transposed(uint32_t (&words)[4], uint32_t shared,
                                     simt::Place place = simt::Place::here()) {
  simt::LoadedMatrices own{words, simt::shared_at(shared, 16, "ldmatrix", place)};
  simt::warp_meeting(~0u, simt::load_matrices_transposed, &own, "ldmatrix.trans", place);
}

#endif

}  // namespace tg::gpu
