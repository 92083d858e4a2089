#include "tapegrad/kernels/cpu/conv2d/image.h"

#include <algorithm>

#include "tapegrad/kernels/dispatch.h"

namespace tg::kernels::conv {
namespace {

// One row of the window that lies inside of the image: [columns][channels] from strided pixels.
template <class T, class From>
void load_row(const From* from, int64_t column_stride, int64_t channel_stride, int64_t columns,
              int64_t channels, T* to) {
  if constexpr (std::is_same_v<T, From>) {
    if (channel_stride == 1 && (column_stride == channels || columns == 1)) {
      std::copy_n(from, columns * channels, to);
      return;
    }
  }
  if (channel_stride == 1) {
    for (int64_t x = 0; x < columns; ++x) {
      for (int64_t c = 0; c < channels; ++c) {
        to[x * channels + c] = static_cast<T>(from[x * column_stride + c]);
      }
    }
    return;
  }
  // Channel planes: a few channels at a time, so that the lines of `to` are met while they are in
  // the first-level cache.
  constexpr int64_t kTogether = 8;
  for (int64_t c = 0; c < channels; c += kTogether) {
    const int64_t end = std::min(c + kTogether, channels);
    for (int64_t x = 0; x < columns; ++x) {
      for (int64_t d = c; d < end; ++d) {
        to[x * channels + d] = static_cast<T>(from[x * column_stride + d * channel_stride]);
      }
    }
  }
}

template <class T, class From>
void load_window(View x, const Window& w, T* to) {
  const From* image = x.as<From>() + w.image * x.stride(0) + w.channel * x.stride(1);
  const int64_t left = std::clamp<int64_t>(-w.column, 0, w.columns);
  const int64_t end = std::clamp<int64_t>(x.size(3) - w.column, left, w.columns);
  for (int64_t r = 0; r < w.rows; ++r, to += w.columns * w.channels) {
    const int64_t row = w.row + r;
    if (row < 0 || row >= x.size(2)) {
      std::fill_n(to, w.columns * w.channels, T(0));
      continue;
    }
    std::fill_n(to, left * w.channels, T(0));
    if (end > left) {
      load_row<T>(image + row * x.stride(2) + (w.column + left) * x.stride(3), x.stride(3),
                  x.stride(1), end - left, w.channels, to + left * w.channels);
    }
    std::fill_n(to + end * w.channels, (w.columns - end) * w.channels, T(0));
  }
}

template <class T, class To>
void store_rows(const T* from, int64_t pixel, MutView y, const Placement& p) {
  To* image = y.as<To>() + p.image * y.stride(0) + p.channel * y.stride(1);
  const int64_t channel_stride = y.stride(1), column_stride = p.column_step * y.stride(3);
  for (int64_t r = 0; r < p.rows; ++r) {
    To* row = image + (p.row + r * p.row_step) * y.stride(2) + p.column * y.stride(3);
    for (int64_t x = 0; x < p.columns; ++x) {
      for (int64_t c = 0; c < p.channels; ++c) {
        row[x * column_stride + c * channel_stride] =
            from ? static_cast<To>(from[(r * p.columns + x) * pixel + c]) : To(T(0));
      }
    }
  }
}

// The dtypes that are computed in T.
template <class T, class F>
void visit_stored(DType t, F&& fn) {
  if constexpr (std::is_same_v<T, double>) {
    fn.template operator()<double>();
  } else if (t == DType::f16) {
    fn.template operator()<Half>();
  } else if (t == DType::bf16) {
    fn.template operator()<BFloat16>();
  } else {
    fn.template operator()<float>();
  }
}

}  // namespace

template <class T>
void load(View x, const Window& window, T* to) {
  visit_stored<T>(x.dtype, [&]<class From>() { load_window<T, From>(x, window, to); });
}

template <class T>
void store(const T* from, int64_t pixel, MutView y, const Placement& placement) {
  visit_stored<T>(y.dtype, [&]<class To>() { store_rows<T, To>(from, pixel, y, placement); });
}

template <class T>
void load_values(const void* from, DType dtype, int64_t offset, int64_t step, int64_t count,
                 T* to) {
  visit_stored<T>(dtype, [&]<class From>() {
    const From* values = static_cast<const From*>(from) + offset;
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(values[i * step]);
  });
}

template void load(View, const Window&, float*);
template void load(View, const Window&, double*);
template void store(const float*, int64_t, MutView, const Placement&);
template void store(const double*, int64_t, MutView, const Placement&);
template void load_values(const void*, DType, int64_t, int64_t, int64_t, float*);
template void load_values(const void*, DType, int64_t, int64_t, int64_t, double*);

}  // namespace tg::kernels::conv
