// Softmax and its logarithm along one dimension, and their derivatives.
//
//   y = exp(x - max) / sum      log y = x - max - log(sum)      sum of exp(x - max)
//   dx = y (dy - sum of dy y)   dx = dy - exp(y) sum of dy
//
// Memory policy: see kernels/cuda/rows.cuh; the backward keeps both of its rows in shared memory.
#include "tapegrad/kernels/softmax.h"

#include "tapegrad/kernels/cuda/rows.cuh"

namespace tg::kernels {
namespace {

using gpu::RowLoops;

template <class T, int kThreads, bool kLog>
__global__ void softmax_kernel(RowLoops loops, int64_t in_shared, const char* x, char* y) {
  using S = gpu::Computed<T>;
  using Team = gpu::Team<kThreads>;
  gpu::for_rows<kThreads, S>(loops, in_shared, [&](int64_t r, S* shared) {
    int64_t place[3];
    gpu::find_places(loops.rows, r, place);
    const int64_t n = loops.length;
    auto row = gpu::take_row<kThreads, T>(x, place[0], loops.step[0], n, shared);

    S largest = -std::numeric_limits<S>::infinity();
    for (int64_t i = Team::rank(); i < n; i += kThreads) largest = gpu::Max()(largest, row(i));
    largest = Team::total(largest, gpu::Max());
    // A row of -inf alone has no softmax: -inf - -inf makes it NaN, as it should be.
    S sum = 0;
    for (int64_t i = Team::rank(); i < n; i += kThreads) sum += exp(row(i) - largest);
    sum = Team::total(sum, gpu::Add());

    T* out = reinterpret_cast<T*>(y + place[1]);
    const S log_sum = log(sum), scale = S(1) / sum;
    for (int64_t i = Team::rank(); i < n; i += kThreads) {
      const S shifted = row(i) - largest;
      out[i * loops.step[1]] = gpu::narrow<T>(kLog ? shifted - log_sum : exp(shifted) * scale);
    }
  });
}

template <class T, int kThreads, bool kLog>
__global__ void softmax_backward_kernel(RowLoops loops, int64_t in_shared, const char* y,
                                        const char* dy, char* dx) {
  using S = gpu::Computed<T>;
  using Team = gpu::Team<kThreads>;
  gpu::for_rows<kThreads, S>(loops, in_shared, [&](int64_t r, S* shared) {
    int64_t place[3];
    gpu::find_places(loops.rows, r, place);
    const int64_t n = loops.length;
    auto out = gpu::take_row<kThreads, T>(y, place[0], loops.step[0], n, shared);
    auto slope =
        gpu::take_row<kThreads, T>(dy, place[1], loops.step[1], n, shared ? shared + n : nullptr);
    S sum = 0;
    for (int64_t i = Team::rank(); i < n; i += kThreads) sum += kLog ? slope(i) : slope(i) * out(i);
    sum = Team::total(sum, gpu::Add());

    T* to = reinterpret_cast<T*>(dx + place[2]);
    for (int64_t i = Team::rank(); i < n; i += kThreads)
      to[i * loops.step[2]] =
          gpu::narrow<T>(kLog ? slope(i) - exp(out(i)) * sum : out(i) * (slope(i) - sum));
  });
}

template <bool kLog>
void run_forward(View x, MutView y, int64_t dim) {
  if (y.numel == 0) return;
  visit_any_float(x.dtype, [&]<class T>() {
    const RowLoops loops = gpu::plan_rows(std::array<View, 2>{x, y}, int(dim));
    gpu::start_rows<T>(loops, 1, [&]<int kThreads>(gpu::Config c, int64_t shared) {
      gpu::start<softmax_kernel<T, kThreads, kLog>>(c, loops, shared, x.as<char>(), y.as<char>());
    });
  });
}

template <bool kLog>
void run_backward(View y, View dy, MutView dx, int64_t dim) {
  if (dx.numel == 0) return;
  visit_any_float(y.dtype, [&]<class T>() {
    const RowLoops loops = gpu::plan_rows(std::array<View, 3>{y, dy, dx}, int(dim));
    gpu::start_rows<T>(loops, 2, [&]<int kThreads>(gpu::Config c, int64_t shared) {
      gpu::start<softmax_backward_kernel<T, kThreads, kLog>>(c, loops, shared, y.as<char>(),
                                                             dy.as<char>(), dx.as<char>());
    });
  });
}

}  // namespace

void softmax(Cuda, View x, MutView y, int64_t dim) { run_forward<false>(x, y, dim); }
void log_softmax(Cuda, View x, MutView y, int64_t dim) { run_forward<true>(x, y, dim); }
void softmax_backward(Cuda, View y, View dy, MutView dx, int64_t dim) {
  run_backward<false>(y, dy, dx, dim);
}
void log_softmax_backward(Cuda, View y, View dy, MutView dx, int64_t dim) {
  run_backward<true>(y, dy, dx, dim);
}

}  // namespace tg::kernels
