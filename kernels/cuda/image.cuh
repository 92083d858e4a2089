// Images [N,C,H,W] of any strides, element by element.
#pragma once
#include "tapegrad/core/view.h"
#include "tapegrad/kernels/cuda/convert.cuh"
#include "tapegrad/kernels/cuda/start.cuh"

namespace tg::gpu {

// One element of an image.
struct Place {
  int64_t n, c, y, x;
};

// All elements of an image, numbered as its memory lies, so that neighbouring threads touch
// neighbouring memory: channels of a pixel together, or plane by plane.
struct Places {
  int64_t numel, channels, rows, columns;
  bool channels_last;

  explicit Places(const View& v)
      : numel(v.numel),
        channels(v.size(1)),
        rows(v.size(2)),
        columns(v.size(3)),
        channels_last(v.stride(1) == 1) {}

  __device__ Place operator[](int64_t i) const {
    Place p;
    if (channels_last) p.c = take(i, channels);
    p.x = take(i, columns);
    p.y = take(i, rows);
    if (!channels_last) p.c = take(i, channels);
    p.n = i;
    return p;
  }

 private:
  // The innermost index of element i, which counts elements without that dimension afterwards.
  __device__ static int64_t take(int64_t& i, int64_t size) {
    const int64_t rest = quotient(i, size), at = i - rest * size;
    i = rest;
    return at;
  }
};

template <class T>
struct Image {
  T* data;
  int64_t n_step, c_step, y_step, x_step;

  template <class V>
  explicit Image(const V& v)
      : data(v.template as<std::remove_const_t<T>>()),
        n_step(v.stride(0)),
        c_step(v.stride(1)),
        y_step(v.stride(2)),
        x_step(v.stride(3)) {}
  __device__ T& at(int64_t n, int64_t c, int64_t y, int64_t x) const {
    return data[n * n_step + c * c_step + y * y_step + x * x_step];
  }
  __device__ T& operator[](const Place& p) const { return at(p.n, p.c, p.y, p.x); }
};

}  // namespace tg::gpu
