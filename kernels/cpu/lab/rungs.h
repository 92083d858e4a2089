// What a rung of each ladder gets and must do, the rungs, and which one is chosen. All problems are
// f32 on plain memory: frame.h brings the engine's operands, of any strides, to this form.
#pragma once
#include <atomic>
#include <cstdint>

#include "tapegrad/kernels/conv2d.h"

namespace tg::kernels::lab {

// C[i][j] = sum over k < depth of A[i][k] B[k][j], stored row by row. Rows begin a_row, b_row and
// c_row values apart. Old C is not to be read. No size is 0.
struct Product {
  int64_t rows, columns, depth;
  const float* a;
  int64_t a_row;
  const float* b;
  int64_t b_row;
  float* c;
  int64_t c_row;
};

// y[i] = exp(x[i] - max) / sum of exp(x - max), for one row of n values.
struct SoftmaxRow {
  int64_t n;
  const float* x;
  float* y;
};

// y = (x - mean) rstd weight + bias for one row of n values, with rstd = 1 / sqrt(variance + eps).
// weight and bias may be null. mean and rstd are results too.
struct LayerNormRow {
  int64_t n;
  const float *x, *weight, *bias;
  double eps;
  float *y, *mean, *rstd;
};

// A convolution without groups; channels lie next to each other.
struct Images {
  int64_t images, height, width, channels;
  int64_t out_height, out_width, out_channels;
  int64_t kernel_h, kernel_w;
  Conv2dGeometry geometry;
  const float* x;       // [images][height][width][channels]
  const float* weight;  // [kernel_h][kernel_w][channels][out_channels]
  const float* bias;    // [out_channels], or null
  float* y;             // [images][out_height][out_width][out_channels]
};

// y[r][c] = x[c][r]: y has `rows` rows that begin y_row values apart, x has `columns` of them.
struct Matrix {
  int64_t rows, columns;
  const float* x;
  int64_t x_row;
  float* y;
  int64_t y_row;
};

template <class Problem>
using Kernel = void (*)(const Problem&);

// The chosen rung of a ladder; null for the engine's own kernel. Any function of that type may be
// put here: chosen<Product> = my_product.
template <class Problem>
inline std::atomic<Kernel<Problem>> chosen{nullptr};
template <class Problem>
Kernel<Problem> chosen_rung() {
  return chosen<Problem>.load(std::memory_order_relaxed);
}

// Of each ladder, from the bottom up. Each is a file of its own, in this order.
void three_loops(const Product& p);
void row_order(const Product& p);
void vectors(const Product& p);
void register_tile(const Product& p);
void packed_panels(const Product& p);

void formula(const SoftmaxRow& p);
void stored(const SoftmaxRow& p);
void polynomial(const SoftmaxRow& p);
void vectors(const SoftmaxRow& p);

void formula(const LayerNormRow& p);
void chains(const LayerNormRow& p);
void vectors(const LayerNormRow& p);

void seven_loops(const Images& p);
void channel_rows(const Images& p);
void im2col(const Images& p);
void windows_in_place(const Images& p);

void gather(const Matrix& p);
void scatter(const Matrix& p);
void tiles(const Matrix& p);

}  // namespace tg::kernels::lab
