// Pooling: a thread makes one element of the result, from the elements of x in its window, or, in
// the adjoints, from the results whose windows cover it. So nothing is added up by two threads, and
// sums go through windows and results row by row, as on the CPU.
//
// Memory: a window that overlaps its neighbours is read again for each of them, mostly out of the
// caches; results are written once.
#include "tapegrad/kernels/pool2d.h"

#include "tapegrad/kernels/cuda/image.cuh"

namespace tg::kernels {
namespace {

using gpu::Computed;
using gpu::Image;
using gpu::Place;
using gpu::Places;

// The larger value wins, of equal ones the first, NaN against anything but an earlier NaN.
template <class T, class P>
__global__ void max_kernel(Places results, PoolAxis h, PoolAxis w, Image<const T> x, Image<T> y,
                           Image<P> position) {
  for (int64_t i = gpu::first_index(); i < results.numel; i += gpu::index_step()) {
    const Place o = results[i];
    const int64_t top = h.begin(o.y), bottom = h.end(o.y), left = w.begin(o.x), right = w.end(o.x);
    Computed<T> best = gpu::widen(x.at(o.n, o.c, top, left));
    int64_t best_at = 0;
    for (int64_t row = top; row < bottom; ++row)
      for (int64_t column = left; column < right; ++column) {
        const Computed<T> value = gpu::widen(x.at(o.n, o.c, row, column));
        if (value <= best || best != best) continue;
        best = value;
        best_at = (row - top) * w.kernel + column - left;
      }
    y[o] = gpu::narrow<T>(best);
    position[o] = P(best_at);
  }
}

template <class T, class P>
__global__ void scatter_kernel(Places inputs, PoolAxis h, PoolAxis w, Image<const T> dy,
                               Image<const P> position, Image<T> dx) {
  for (int64_t i = gpu::first_index(); i < inputs.numel; i += gpu::index_step()) {
    const Place p = inputs[i];
    Computed<T> sum = 0;
    for (int64_t oy = h.first_result(p.y); oy < h.end_result(p.y); ++oy)
      for (int64_t ox = w.first_result(p.x); ox < w.end_result(p.x); ++ox) {
        const int64_t here = (p.y - h.begin(oy)) * w.kernel + p.x - w.begin(ox);
        if (position.at(p.n, p.c, oy, ox) == here) sum += gpu::widen(dy.at(p.n, p.c, oy, ox));
      }
    dx[p] = gpu::narrow<T>(sum);
  }
}

template <class T, class P>
__global__ void gather_kernel(Places results, PoolAxis h, PoolAxis w, Image<const T> x,
                              Image<const P> position, Image<T> y) {
  for (int64_t i = gpu::first_index(); i < results.numel; i += gpu::index_step()) {
    const Place o = results[i];
    const int64_t taken = position[o], row = gpu::quotient(taken, w.kernel);
    y[o] = x.at(o.n, o.c, h.begin(o.y) + row, w.begin(o.x) + taken - row * w.kernel);
  }
}

// Row sums, then their sum: a window may be a whole image.
template <class T>
__global__ void average_kernel(Places results, PoolAxis h, PoolAxis w, bool count_padding,
                               Image<const T> x, Image<T> y) {
  using S = Computed<T>;
  for (int64_t i = gpu::first_index(); i < results.numel; i += gpu::index_step()) {
    const Place o = results[i];
    const int64_t left = w.begin(o.x), right = w.end(o.x);
    S total = 0;
    for (int64_t row = h.begin(o.y); row < h.end(o.y); ++row) {
      S sum = 0;
      for (int64_t column = left; column < right; ++column)
        sum += gpu::widen(x.at(o.n, o.c, row, column));
      total += sum;
    }
    y[o] = gpu::narrow<T>(total / S(size_of_window(h, w, o.y, o.x, count_padding)));
  }
}

template <class T>
__global__ void spread_kernel(Places inputs, PoolAxis h, PoolAxis w, bool count_padding,
                              Image<const T> dy, Image<T> dx) {
  using S = Computed<T>;
  for (int64_t i = gpu::first_index(); i < inputs.numel; i += gpu::index_step()) {
    const Place p = inputs[i];
    S sum = 0;
    for (int64_t oy = h.first_result(p.y); oy < h.end_result(p.y); ++oy)
      for (int64_t ox = w.first_result(p.x); ox < w.end_result(p.x); ++ox)
        sum += gpu::widen(dy.at(p.n, p.c, oy, ox)) / S(size_of_window(h, w, oy, ox, count_padding));
    dx[p] = gpu::narrow<T>(sum);
  }
}

gpu::Config threads_for(const View& written) {
  return {gpu::blocks_for_each(written.numel), gpu::kThreads};
}

}  // namespace

void max_pool2d(Cuda, View x, MutView y, MutView position, const PoolAxis& h, const PoolAxis& w) {
  if (y.numel == 0) return;
  visit_any_float(x.dtype, [&]<class T>() {
    visit_position(position.dtype, [&]<class P>() {
      gpu::start<max_kernel<T, P>>(threads_for(y), Places(y), h, w, Image<const T>(x), Image<T>(y),
                                   Image<P>(position));
    });
  });
}

void max_pool2d_scatter(Cuda, View dy, View position, MutView dx, const PoolAxis& h,
                        const PoolAxis& w) {
  if (dx.numel == 0) return;
  visit_any_float(dy.dtype, [&]<class T>() {
    visit_position(position.dtype, [&]<class P>() {
      gpu::start<scatter_kernel<T, P>>(threads_for(dx), Places(dx), h, w, Image<const T>(dy),
                                       Image<const P>(position), Image<T>(dx));
    });
  });
}

void max_pool2d_gather(Cuda, View x, View position, MutView y, const PoolAxis& h,
                       const PoolAxis& w) {
  if (y.numel == 0) return;
  visit_any_float(x.dtype, [&]<class T>() {
    visit_position(position.dtype, [&]<class P>() {
      gpu::start<gather_kernel<T, P>>(threads_for(y), Places(y), h, w, Image<const T>(x),
                                      Image<const P>(position), Image<T>(y));
    });
  });
}

void avg_pool2d(Cuda, View x, MutView y, const PoolAxis& h, const PoolAxis& w, bool count_padding) {
  if (y.numel == 0) return;
  visit_any_float(x.dtype, [&]<class T>() {
    gpu::start<average_kernel<T>>(threads_for(y), Places(y), h, w, count_padding, Image<const T>(x),
                                  Image<T>(y));
  });
}

void avg_pool2d_backward(Cuda, View dy, MutView dx, const PoolAxis& h, const PoolAxis& w,
                         bool count_padding) {
  if (dx.numel == 0) return;
  visit_any_float(dy.dtype, [&]<class T>() {
    gpu::start<spread_kernel<T>>(threads_for(dx), Places(dx), h, w, count_padding,
                                 Image<const T>(dy), Image<T>(dx));
  });
}

}  // namespace tg::kernels
