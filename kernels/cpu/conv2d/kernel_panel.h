// The kernel of a convolution in the order in which products read it: neighbouring target channels
// next to each other.
#pragma once
#include <algorithm>

#include "tapegrad/kernels/cpu/conv2d/correlate.h"
#include "tapegrad/kernels/cpu/conv2d/image.h"
#include "tapegrad/kernels/cpu/gemm/simd.h"

namespace tg::kernels::conv {

// count x width values, from[i * step + lane * lane_step], as to[i][kTileColumns]; lanes past
// `width` are left as they are.
template <class T>
void transpose_lanes(const T* from, int64_t step, int64_t lane_step, int64_t count, int64_t width,
                     T* to) {
  using S = gemm::Simd<T>;
  constexpr int64_t kColumns = gemm::kTileColumns<T>, kLanes = S::kLanes;
  int64_t i = 0;
  if (step == 1 && width == kColumns) {
    for (; i + kLanes <= count; i += kLanes) {
      for (int64_t lane = 0; lane < kColumns; lane += kLanes) {
        S::transpose(from + lane * lane_step + i, lane_step, to + i * kColumns + lane, kColumns);
      }
    }
  }
  for (; i < count; ++i) {
    for (int64_t lane = 0; lane < width; ++lane) {
      to[i * kColumns + lane] = from[i * step + lane * lane_step];
    }
  }
}

// Source channels [first, first + count) of a panel of kTileColumns target channels:
// to[source channel][tap row][tap column][kTileColumns], taps in the order of the axes.
template <class T>
void pack_kernel_lanes(const Correlation<T>& c, int64_t group, int64_t panel, int64_t first,
                       int64_t count, T* to) {
  constexpr int64_t kColumns = gemm::kTileColumns<T>;
  const int64_t width = std::min(kColumns, c.target_channels - panel * kColumns);
  const int64_t base = group * c.kernel_group + panel * kColumns * c.kernel_target +
                       first * c.kernel_source + c.h.kernel_first * c.kernel_h +
                       c.w.kernel_first * c.kernel_w;
  const int64_t row_step = c.h.kernel_step * c.kernel_h, step = c.w.kernel_step * c.kernel_w;
  const int64_t taps = c.h.taps * c.w.taps;
  if (c.kernel.dtype == dtype_of<T>() && step == 1 && row_step == c.w.taps &&
      c.kernel_source == taps) {
    // Sources and their taps follow each other in memory.
    transpose_lanes(c.kernel.template as<T>() + base, 1, c.kernel_target, count * taps, width, to);
    return;
  }
  for (int64_t s = 0; s < count; ++s) {
    for (int64_t ty = 0; ty < c.h.taps; ++ty) {
      for (int64_t tx = 0; tx < c.w.taps; ++tx, to += kColumns) {
        const int64_t offset = base + s * c.kernel_source + ty * row_step + tx * step;
        if (c.kernel.dtype == dtype_of<T>()) {
          const T* from = c.kernel.template as<T>() + offset;
          for (int64_t lane = 0; lane < width; ++lane) to[lane] = from[lane * c.kernel_target];
        } else {
          load_values(c.kernel.data, c.kernel.dtype, offset, c.kernel_target, width, to);
        }
      }
    }
  }
}

}  // namespace tg::kernels::conv
