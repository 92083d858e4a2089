// The warp's matrix instructions, lane by lane as the PTX manual lays their fragments out, and
// copies that run beside the arithmetic. Device code reaches them through kernels/cuda/device.cuh.
//
// An address of shared memory is a number of 32 bits on the device. Here it counts from the start
// of dynamic shared memory, which is therefore the only kind these functions know.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>

#include "tapegrad/kernels/simt/engine.h"

namespace tg::simt {

inline unsigned char* shared_at(uint32_t address, uint32_t bytes, const char* what, Place place) {
  if (address % bytes) fault(std::string(what) + ": misaligned address of shared memory", place);
  if (address + bytes > dynamic_shared_bytes())
    fault(std::string(what) + ": past the end of dynamic shared memory", place);
  return dynamic_shared() + address;
}

struct MmaFragments {
  float* d;
  const uint32_t *a, *b;
};

template <class T>
float unpack(uint32_t pair, int which) {
  const uint16_t bits = uint16_t(which ? pair >> 16 : pair);
  T value;
  std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
  return float(value);
}

// d += a b with a [16,16], b [16,8], d [16,8]. With g = lane / 4 and t = lane % 4, a lane holds
//   a: rows g and g + 8, columns 2t, 2t + 1 and the same + 8      b: rows 2t.. and + 8, column g
//   d: rows g and g + 8, columns 2t and 2t + 1
template <class T>
void mma_16x8x16(void* const* payloads, unsigned) {
  float a[16][16], b[16][8];
  for (int lane = 0; lane < 32; ++lane) {
    const auto* f = static_cast<MmaFragments*>(payloads[lane]);
    const int g = lane / 4, t = lane % 4;
    for (int e = 0; e < 2; ++e) {
      a[g][2 * t + e] = unpack<T>(f->a[0], e);
      a[g + 8][2 * t + e] = unpack<T>(f->a[1], e);
      a[g][2 * t + 8 + e] = unpack<T>(f->a[2], e);
      a[g + 8][2 * t + 8 + e] = unpack<T>(f->a[3], e);
      b[2 * t + e][g] = unpack<T>(f->b[0], e);
      b[2 * t + 8 + e][g] = unpack<T>(f->b[1], e);
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    const auto* f = static_cast<MmaFragments*>(payloads[lane]);
    const int g = lane / 4, t = lane % 4;
    for (int e = 0; e < 4; ++e) {
      const int row = g + e / 2 * 8, column = 2 * t + e % 2;
      float sum = f->d[e];
      for (int k = 0; k < 16; ++k) sum += a[row][k] * b[k][column];
      f->d[e] = sum;
    }
  }
}

struct LoadedMatrices {
  uint32_t* words;
  const unsigned char* row;  // lane l names row l % 8 of matrix l / 8
};

// Four matrices of 8 x 8 16-bit values; lane l gets elements 2 (l % 4) and the next of row l / 4 of
// each, or, transposed, of column l / 4.
inline void load_matrices(void* const* payloads, unsigned) {
  for (int lane = 0; lane < 32; ++lane)
    for (int m = 0; m < 4; ++m) {
      const auto* source = static_cast<LoadedMatrices*>(payloads[8 * m + lane / 4]);
      std::memcpy(static_cast<LoadedMatrices*>(payloads[lane])->words + m,
                  source->row + lane % 4 * 4, 4);
    }
}
inline void load_matrices_transposed(void* const* payloads, unsigned) {
  for (int lane = 0; lane < 32; ++lane)
    for (int m = 0; m < 4; ++m) {
      auto* words = static_cast<LoadedMatrices*>(payloads[lane])->words;
      for (int e = 0; e < 2; ++e) {
        const auto* source = static_cast<LoadedMatrices*>(payloads[8 * m + 2 * (lane % 4) + e]);
        std::memcpy(reinterpret_cast<char*>(words + m) + 2 * e, source->row + lane / 4 * 2, 2);
      }
    }
}

}  // namespace tg::simt
