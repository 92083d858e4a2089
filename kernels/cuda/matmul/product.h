// A matrix product as its kernels get it. Private to kernels/cuda.
#pragma once
#include "tapegrad/core/view.h"
#include "tapegrad/kernels/cuda/elementwise.cuh"

namespace tg::gpu {

// One matrix of an operand: strides in elements.
struct Matrix {
  const void* data;
  int64_t row, column;
};

// c [m,n] = a [m,k] b [k,n] + addend [m,n], for each matrix of the batch.
struct Product {
  int64_t m, n, k;
  Matrix a, b, addend;  // addend.data null: none
  void* c;              // contiguous
  Strided<3> batch;     // places of c, a, b, addend, in bytes
};

// f16 and bf16 on tensor cores. False where the operands do not lie so that it can: each needs one
// dimension without gaps, and pieces of 16 bytes that are aligned. The addend may be a bias only.
bool tensor_core_product(const Product& product, DType dtype);
// Any dtype, any strides.
void tiled_product(const Product& product, DType dtype);

}  // namespace tg::gpu
