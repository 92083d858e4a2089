// Pieces of images on their way between tensors of any strides and dtype and the form that the
// kernels work on: f32 or f64, channels next to each other.
#pragma once
#include "tapegrad/core/view.h"

namespace tg::kernels::conv {

// A rectangle of one image of a [N,C,H,W] tensor, and some of its channels. Rows and columns may
// lie outside of the image.
struct Window {
  int64_t image = 0;
  int64_t channel = 0, channels = 0;
  int64_t row = 0, rows = 0;
  int64_t column = 0, columns = 0;
};

// The window as [rows][columns][channels], zeros outside of the image.
template <class T>
void load(View x, const Window& window, T* to);

// How results of a tile lie in a [N,C,H,W] tensor: every row_step-th row and column_step-th
// column from (row, column) on.
struct Placement {
  int64_t image = 0, channel = 0, channels = 0;
  int64_t row = 0, row_step = 1, rows = 0;
  int64_t column = 0, column_step = 1, columns = 0;
};

// [rows][columns][channels] into y, rounded to its dtype; `pixel` is the distance between pixels of
// `from`. With from = null: zeros.
template <class T>
void store(const T* from, int64_t pixel, MutView y, const Placement& placement);

// True if the channels of a pixel lie next to each other and need no conversion to T.
template <class T>
bool has_channel_rows(View x) {
  return x.dtype == dtype_of<T>() && (x.stride(1) == 1 || x.size(1) == 1);
}

// Any strided values -> a dense list, converted; and back.
template <class T>
void load_values(const void* from, DType dtype, int64_t offset, int64_t step, int64_t count, T* to);

}  // namespace tg::kernels::conv
