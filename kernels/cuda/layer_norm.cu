// Layer normalisation of the rows of x [rows, n], and its derivatives; formulas in layer_norm.h.
//
// Memory policy: a row is read once (kernels/cuda/rows.cuh); the variance is that of the distances
// from the mean. The gradients of weight and bias are sums over rows: rows are cut into at most
// kParts parts by the shape alone, a thread adds up one column of a part, and the parts are added
// in their order.
#include "tapegrad/kernels/layer_norm.h"

#include "tapegrad/core/allocator.h"
#include "tapegrad/kernels/cuda/rows.cuh"

namespace tg::kernels {
namespace {

using gpu::RowLoops;
constexpr int64_t kParts = 64;

template <class T>
__device__ gpu::Computed<T> value_or(const T* p, int64_t i, gpu::Computed<T> otherwise) {
  return p ? gpu::widen(p[i]) : otherwise;
}

template <class T, int kThreads>
__global__ void layer_norm_kernel(RowLoops loops, int64_t in_shared, const char* x, const T* weight,
                                  const T* bias, T* y, gpu::Computed<T>* mean,
                                  gpu::Computed<T>* rstd, double eps) {
  using S = gpu::Computed<T>;
  using Team = gpu::Team<kThreads>;
  gpu::for_rows<kThreads, S>(loops, in_shared, [&](int64_t r, S* shared) {
    const int64_t n = loops.length;
    auto row = gpu::take_row<kThreads, T>(x, r * n * int64_t(sizeof(T)), 1, n, shared);
    S sum = 0;
    for (int64_t i = Team::rank(); i < n; i += kThreads) sum += row(i);
    const S center = Team::total(sum, gpu::Add()) / S(n);
    S squares = 0;
    for (int64_t i = Team::rank(); i < n; i += kThreads) {
      const S d = row(i) - center;
      squares += d * d;
    }
    const S scale = S(1) / sqrt(Team::total(squares, gpu::Add()) / S(n) + S(eps));
    for (int64_t i = Team::rank(); i < n; i += kThreads)
      y[r * n + i] = gpu::narrow<T>((row(i) - center) * scale * value_or(weight, i, S(1)) +
                                    value_or(bias, i, S(0)));
    if (Team::rank() == 0) {
      mean[r] = center;
      rstd[r] = scale;
    }
  });
}

template <class T, int kThreads>
__global__ void input_gradient_kernel(RowLoops loops, int64_t in_shared, const char* x,
                                      const char* dy, const T* weight, const gpu::Computed<T>* mean,
                                      const gpu::Computed<T>* rstd, T* dx) {
  using S = gpu::Computed<T>;
  using Team = gpu::Team<kThreads>;
  gpu::for_rows<kThreads, S>(loops, in_shared, [&](int64_t r, S* shared) {
    const int64_t n = loops.length, place = r * n * int64_t(sizeof(T));
    auto row = gpu::take_row<kThreads, T>(x, place, 1, n, shared);
    auto slope = gpu::take_row<kThreads, T>(dy, place, 1, n, shared ? shared + n : nullptr);
    const S center = mean[r], scale = rstd[r];
    S of_g = 0, of_g_xhat = 0;
    for (int64_t i = Team::rank(); i < n; i += kThreads) {
      const S g = slope(i) * value_or(weight, i, S(1));
      of_g += g;
      of_g_xhat += g * (row(i) - center) * scale;
    }
    of_g = Team::total(of_g, gpu::Add()) / S(n);
    of_g_xhat = Team::total(of_g_xhat, gpu::Add()) / S(n);
    for (int64_t i = Team::rank(); i < n; i += kThreads) {
      const S g = slope(i) * value_or(weight, i, S(1)), xhat = (row(i) - center) * scale;
      dx[r * n + i] = gpu::narrow<T>(scale * (g - of_g - xhat * of_g_xhat));
    }
  });
}

// parts [kParts, 2, n]: sums of dy xhat and of dy over the rows of a part; grid (columns, parts)
template <class T>
__global__ void column_parts_kernel(const T* x, const T* dy, const gpu::Computed<T>* mean,
                                    const gpu::Computed<T>* rstd, int64_t rows, int64_t n,
                                    int64_t rows_of_part, gpu::Computed<T>* parts) {
  using S = gpu::Computed<T>;
  const int64_t part = blockIdx.y, end = min((part + 1) * rows_of_part, rows);
  for (int64_t c = gpu::first_index(); c < n; c += gpu::index_step()) {
    S weight = 0, bias = 0;
    for (int64_t r = part * rows_of_part; r < end; ++r) {
      const S g = gpu::widen(dy[r * n + c]);
      weight += g * (gpu::widen(x[r * n + c]) - mean[r]) * rstd[r];
      bias += g;
    }
    parts[(part * 2) * n + c] = weight;
    parts[(part * 2 + 1) * n + c] = bias;
  }
}

template <class T>
__global__ void add_parts_kernel(const gpu::Computed<T>* parts, int64_t count, int64_t n,
                                 T* dweight, T* dbias) {
  using S = gpu::Computed<T>;
  for (int64_t c = gpu::first_index(); c < n; c += gpu::index_step()) {
    S weight = 0, bias = 0;
    for (int64_t p = 0; p < count; ++p) {
      weight += parts[(p * 2) * n + c];
      bias += parts[(p * 2 + 1) * n + c];
    }
    if (dweight) dweight[c] = gpu::narrow<T>(weight);
    if (dbias) dbias[c] = gpu::narrow<T>(bias);
  }
}

// Everything is contiguous, so rows are known by their number and length.
RowLoops contiguous_rows(View x, View mean) {
  RowLoops loops{};
  loops.rows.numel = mean.numel;
  loops.length = mean.numel > 0 ? x.numel / mean.numel : 0;
  return loops;
}

template <class T>
void weight_gradients(View x, View dy, View mean, View rstd, MutView dweight, MutView dbias) {
  using S = gpu::Computed<T>;
  const int64_t rows = mean.numel, n = dweight.data ? dweight.numel : dbias.numel;
  if (n == 0) return;
  const int64_t rows_of_part = std::max<int64_t>(1, (rows + kParts - 1) / kParts);
  const int64_t parts = std::max<int64_t>(1, (rows + rows_of_part - 1) / rows_of_part);
  Workspace workspace(size_t(parts * 2 * n) * sizeof(S), cuda::current_device());
  S* sums = workspace.as<S>();
  const unsigned across = gpu::blocks_for_each(n);
  gpu::start<column_parts_kernel<T>>({dim3(across, unsigned(parts)), gpu::kThreads}, x.as<T>(),
                                     dy.as<T>(), mean.as<S>(), rstd.as<S>(), rows, n, rows_of_part,
                                     sums);
  gpu::start<add_parts_kernel<T>>({across, gpu::kThreads}, sums, parts, n, dweight.as<T>(),
                                  dbias.as<T>());
}

}  // namespace

void layer_norm(Cuda, View x, View weight, View bias, MutView y, MutView mean, MutView rstd,
                double eps) {
  if (mean.numel == 0) return;
  visit_any_float(x.dtype, [&]<class T>() {
    using S = gpu::Computed<T>;
    const RowLoops loops = contiguous_rows(x, mean);
    gpu::start_rows<T>(loops, 1, [&]<int kThreads>(gpu::Config c, int64_t shared) {
      gpu::start<layer_norm_kernel<T, kThreads>>(c, loops, shared, x.as<char>(), weight.as<T>(),
                                                 bias.as<T>(), y.as<T>(), mean.as<S>(),
                                                 rstd.as<S>(), eps);
    });
  });
}

void layer_norm_backward(Cuda, View x, View dy, View weight, View mean, View rstd, MutView dx,
                         MutView dweight, MutView dbias) {
  visit_any_float(x.dtype, [&]<class T>() {
    using S = gpu::Computed<T>;
    if (dweight.data || dbias.data) weight_gradients<T>(x, dy, mean, rstd, dweight, dbias);
    if (!dx.data || x.numel == 0) return;
    const RowLoops loops = contiguous_rows(x, mean);
    gpu::start_rows<T>(loops, 2, [&]<int kThreads>(gpu::Config c, int64_t shared) {
      gpu::start<input_gradient_kernel<T, kThreads>>(c, loops, shared, x.as<char>(), dy.as<char>(),
                                                     weight.as<T>(), mean.as<S>(), rstd.as<S>(),
                                                     dx.as<T>());
    });
  });
}

}  // namespace tg::kernels
