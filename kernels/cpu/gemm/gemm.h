// The matrix product on plain memory: what matmul, linear, attention and convolution are built on.
#pragma once
#include <cstdint>

namespace tg::kernels::gemm {

// C = op(A) op(B) + addend, everything row-major.
//
//   op(A) [rows, depth]     a_transposed: A is stored [depth, rows]
//   op(B) [depth, columns]  b_transposed: B is stored [columns, depth]
//   C     [rows, columns]
//
// a_row, b_row, c_row are the distances between stored rows, in values; within a row values follow
// each other. depth = 0 gives the addend, or zeros. C must not overlap the operands.
template <class T>
struct Product {
  int64_t rows = 0, columns = 0, depth = 0;
  const T* a = nullptr;
  int64_t a_row = 0;
  bool a_transposed = false;
  const T* b = nullptr;
  int64_t b_row = 0;
  bool b_transposed = false;
  T* c = nullptr;
  int64_t c_row = 0;
  // null: old C is never read. C itself: the product is added to C. addend_row = 0: a bias.
  const T* addend = nullptr;
  int64_t addend_row = 0;
};

// Many products of one shape: product i uses a + i * a_step and so on; a step of 0 shares an
// operand.
struct Batch {
  int64_t count = 1;
  int64_t a_step = 0, b_step = 0, c_step = 0, addend_step = 0;
};

// The same bits for any number of threads: the order in which an element's sum is taken depends on
// rows, columns and depth alone.
void multiply(const Product<float>& product, const Batch& batch = {});
void multiply(const Product<double>& product, const Batch& batch = {});

}  // namespace tg::kernels::gemm
