// Batch normalisation. The values of a channel are cut into slices by the shape alone; a block adds
// up a slice, and the slices are joined in their order, in f64. So the bits never change.
//
//   moments_kernel          per channel and slice: mean, sum of squared distances from it
//   gradient_sums_kernel    per channel and slice: sum of dy, of dy (x - mean)
//   join_..., apply_...     per channel: everything that the next pass needs, as four coefficients
//   combine_kernel          out = dy scale + (x - mean) slope + shift: the forward without dy, the
//                           backward without statistics without x
//
// Memory: the statistics read x once (a slice is short enough to be read again out of a cache), the
// gradient sums read x and dy once, and combine_kernel reads them once more.
#include "tapegrad/kernels/batch_norm.h"

#include <cmath>

#include "tapegrad/core/allocator.h"
#include "tapegrad/kernels/cuda/block_reduce.cuh"
#include "tapegrad/kernels/cuda/convert_any.cuh"
#include "tapegrad/kernels/cuda/start.cuh"

namespace tg::kernels {
namespace {

using gpu::Computed;

constexpr int64_t kSlice = 8192, kMostSlices = 1024;

// A tensor as memory has it, [rows, count, inner]: inner is 1 where the channels of a pixel lie
// next to each other, else it is the size of a plane.
struct Channels {
  int64_t count, inner, values, slice, slices;  // values: of a channel

  explicit Channels(const View& x) {
    count = x.size(1);
    values = x.numel / std::max<int64_t>(1, count);
    inner = channels_are_innermost(x) ? 1 : values / std::max<int64_t>(1, x.size(0));
    slice = std::max(kSlice, (values + kMostSlices - 1) / kMostSlices);
    slices = (values + slice - 1) / slice;
  }
  __device__ int64_t place(int64_t c, int64_t v) const {
    const int64_t row = gpu::quotient(v, inner);
    return (row * count + c) * inner + v - row * inner;
  }
  __device__ int64_t channel_of(int64_t place) const {
    const int64_t row = gpu::quotient(place, inner);
    return row - gpu::quotient(row, count) * count;
  }
};

// A number for each channel, of any float dtype; data null: there is none.
struct Numbers {
  char* data;
  DType dtype;
  int64_t step;  // in bytes

  template <class V>
  explicit Numbers(const V& v)
      : data(static_cast<char*>(const_cast<void*>(static_cast<const void*>(v.data)))),
        dtype(v.dtype),
        step(v.data ? v.stride(0) * int64_t(size_of(v.dtype)) : 0) {}
  __device__ double load(int64_t c, double missing) const {
    return data ? gpu::Reals::load(dtype, data + c * step) : missing;
  }
  __device__ void store(int64_t c, double value) const {
    if (data) gpu::store_wide(dtype, data + c * step, value);
  }
};

// ---- Sums over a slice

// The part of a block: a slice of kAcross channels, which neighbouring threads take where their
// values are neighbours.
template <int kAcross>
struct Part {
  int64_t channel, begin, end;
  bool real;  // the channel is there

  static constexpr int kStep = gpu::kThreads / kAcross;
  __device__ explicit Part(const Channels& all) {
    channel = int64_t(blockIdx.x) * kAcross + threadIdx.x % kAcross;
    begin = blockIdx.y * all.slice + threadIdx.x / kAcross;
    end = min((blockIdx.y + 1) * all.slice, all.values);
    real = channel < all.count;
    if (!real) begin = end;
  }
  // The sum over the threads of a channel; all threads of the block take part.
  template <class S>
  __device__ static S total(S mine) {
    if constexpr (kAcross == 1) return gpu::block_total<gpu::kThreads>(mine, gpu::Add());
    __shared__ S parts[gpu::kThreads];
    parts[threadIdx.x] = mine;
    __syncthreads();
    S sum = 0;
    for (int k = 0; k < kStep; ++k) sum += parts[k * kAcross + threadIdx.x % kAcross];
    __syncthreads();  // the next use must not overwrite what a slow thread still reads
    return sum;
  }
  // One thread writes the results of a channel.
  __device__ bool writes() const { return real && threadIdx.x < kAcross; }
};

struct Pair {
  double first, second;
};

// parts [slices, count]: mean, sum of squared distances; grid (channels, slices)
template <class T, int kAcross>
__global__ void moments_kernel(Channels all, const T* x, Pair* parts) {
  using S = Computed<T>;
  const Part<kAcross> part(all);
  S sum = 0;
  for (int64_t v = part.begin; v < part.end; v += part.kStep)
    sum += gpu::widen(x[all.place(part.channel, v)]);
  const int64_t count = min(all.slice, all.values - blockIdx.y * all.slice);
  const S mean = part.total(sum) / S(count);
  S squares = 0;
  for (int64_t v = part.begin; v < part.end; v += part.kStep) {
    const S d = gpu::widen(x[all.place(part.channel, v)]) - mean;
    squares = fma(d, d, squares);
  }
  squares = part.total(squares);
  if (part.writes()) parts[blockIdx.y * all.count + part.channel] = {double(mean), double(squares)};
}

// parts [slices, count]: sum of dy, of dy (x - mean); grid (channels, slices)
template <class T, int kAcross>
__global__ void gradient_sums_kernel(Channels all, const T* x, const T* dy, const Computed<T>* mean,
                                     Pair* parts) {
  using S = Computed<T>;
  const Part<kAcross> part(all);
  const S center = part.real ? mean[part.channel] : S(0);
  S sum = 0, product = 0;
  for (int64_t v = part.begin; v < part.end; v += part.kStep) {
    const int64_t at = all.place(part.channel, v);
    const S g = gpu::widen(dy[at]);
    sum += g;
    product = fma(g, gpu::widen(x[at]) - center, product);
  }
  sum = part.total(sum);
  product = part.total(product);
  if (part.writes()) parts[blockIdx.y * all.count + part.channel] = {double(sum), double(product)};
}

// ---- Per channel

// mean and squared distances of two sets together: accurate wherever the mean lies
template <class S>
__global__ void join_moments_kernel(Channels all, const Pair* parts, double eps, double momentum,
                                    S* mean, S* rstd, Numbers running_mean, Numbers running_var) {
  for (int64_t c = gpu::first_index(); c < all.count; c += gpu::index_step()) {
    double center = 0, squares = 0, count = 0;
    for (int64_t s = 0; s < all.slices; ++s) {
      const Pair part = parts[s * all.count + c];
      const double more = double(min(all.slice, all.values - s * all.slice));
      const double total = count + more, delta = part.first - center;
      center += delta * (more / total);
      squares += part.second + delta * delta * (count * more / total);
      count = total;
    }
    mean[c] = S(center);
    rstd[c] = S(1 / sqrt(squares / count + eps));
    running_mean.store(c, (1 - momentum) * running_mean.load(c, 0) + momentum * center);
    running_var.store(c,
                      (1 - momentum) * running_var.load(c, 0) + momentum * (squares / (count - 1)));
  }
}

template <class S>
struct Coefficients {
  S minus_mean, scale, slope, shift;
};

template <class S>
__global__ void apply_coefficients_kernel(int64_t count, const S* mean, const S* rstd,
                                          Numbers weight, Numbers bias, Coefficients<S>* to) {
  for (int64_t c = gpu::first_index(); c < count; c += gpu::index_step())
    to[c] = {-mean[c], S(0), S(weight.load(c, 1)) * rstd[c], S(bias.load(c, 0))};
}

// parts null: nobody asks for sums.
template <class S>
__global__ void join_gradients_kernel(Channels all, const Pair* parts, const S* mean, const S* rstd,
                                      Numbers weight, bool through_statistics, Numbers dweight,
                                      Numbers dbias, Coefficients<S>* to) {
  for (int64_t c = gpu::first_index(); c < all.count; c += gpu::index_step()) {
    double sum = 0, product = 0;
    for (int64_t s = 0; parts && s < all.slices; ++s) {
      const Pair part = parts[s * all.count + c];
      sum += part.first;
      product += part.second;
    }
    const double r = double(rstd[c]), scale = weight.load(c, 1) * r, n = double(all.values);
    dbias.store(c, sum);
    dweight.store(c, product * r);
    to[c] = {-mean[c], S(scale), S(0), S(0)};
    if (!through_statistics) continue;
    to[c].slope = S(-scale * r * r * product / n);
    to[c].shift = S(-scale * sum / n);
  }
}

// ---- The pass that writes

template <class T>
__global__ void combine_kernel(Channels all, const T* dy, const T* x,
                               const Coefficients<Computed<T>>* coefficients, T* out) {
  using S = Computed<T>;
  for (int64_t i = gpu::first_index(); i < all.count * all.values; i += gpu::index_step()) {
    const Coefficients<S> k = coefficients[all.channel_of(i)];
    S result = 0;
    if (x) result = fma(gpu::widen(x[i]) + k.minus_mean, k.slope, k.shift);
    if (dy) result = fma(gpu::widen(dy[i]), k.scale, result);
    out[i] = gpu::narrow<T>(result);
  }
}

// fn.operator()<channels of a block>(configuration) for sums over slices.
template <class F>
void visit_across(const Channels& all, F&& fn) {
  constexpr int kWarp = 32;
  if (all.values == 0) return;
  const auto config = [&](int64_t across) {
    return gpu::Config{dim3(unsigned((all.count + across - 1) / across), unsigned(all.slices)),
                       gpu::kThreads};
  };
  if (all.inner < kWarp) return fn.template operator()<kWarp>(config(kWarp));
  fn.template operator()<1>(config(1));
}

gpu::Config thread_for_each(int64_t n) { return {gpu::blocks_for_each(n), gpu::kThreads}; }

// An array for the time of a call.
template <class E>
struct Array {
  Workspace memory;
  explicit Array(int64_t n)
      : memory(size_t(std::max<int64_t>(1, n)) * sizeof(E), cuda::current_device()) {}
  operator E*() { return memory.as<E>(); }
};

}  // namespace

void batch_norm_statistics(Cuda, View x, double eps, MutView mean, MutView rstd, double momentum,
                           MutView running_mean, MutView running_var) {
  const Channels all(x);
  if (all.count == 0) return;
  Array<Pair> parts(all.slices * all.count);
  visit_any_float(x.dtype, [&]<class T>() {
    using S = Computed<T>;
    visit_across(all, [&]<int kAcross>(gpu::Config c) {
      gpu::start<moments_kernel<T, kAcross>>(c, all, x.as<T>(), parts);
    });
    gpu::start<join_moments_kernel<S>>(thread_for_each(all.count), all, parts, eps, momentum,
                                       mean.as<S>(), rstd.as<S>(), Numbers(running_mean),
                                       Numbers(running_var));
  });
}

void batch_norm_apply(Cuda, View x, View mean, View rstd, View weight, View bias, MutView y) {
  if (y.numel == 0) return;
  const Channels all(x);
  visit_any_float(x.dtype, [&]<class T>() {
    using S = Computed<T>;
    Array<Coefficients<S>> coefficients(all.count);
    gpu::start<apply_coefficients_kernel<S>>(thread_for_each(all.count), all.count, mean.as<S>(),
                                             rstd.as<S>(), Numbers(weight), Numbers(bias),
                                             coefficients);
    gpu::start<combine_kernel<T>>(thread_for_each(y.numel), all, nullptr, x.as<T>(), coefficients,
                                  y.as<T>());
  });
}

void batch_norm_backward(Cuda, View x, View dy, View mean, View rstd, View weight,
                         bool through_statistics, MutView dx, MutView dweight, MutView dbias) {
  const Channels all(x);
  if (all.count == 0) return;
  const bool sums = through_statistics || dweight.data || dbias.data;
  Array<Pair> parts(sums ? all.slices * all.count : 0);
  visit_any_float(x.dtype, [&]<class T>() {
    using S = Computed<T>;
    Array<Coefficients<S>> coefficients(all.count);
    if (sums)
      visit_across(all, [&]<int kAcross>(gpu::Config c) {
        gpu::start<gradient_sums_kernel<T, kAcross>>(c, all, x.as<T>(), dy.as<T>(), mean.as<S>(),
                                                     parts);
      });
    gpu::start<join_gradients_kernel<S>>(thread_for_each(all.count), all,
                                         sums ? static_cast<Pair*>(parts) : nullptr, mean.as<S>(),
                                         rstd.as<S>(), Numbers(weight), through_statistics,
                                         Numbers(dweight), Numbers(dbias), coefficients);
    if (dx.data && dx.numel > 0)
      gpu::start<combine_kernel<T>>(thread_for_each(dx.numel), all, dy.as<T>(),
                                    through_statistics ? x.as<T>() : nullptr, coefficients,
                                    dx.as<T>());
  });
}

}  // namespace tg::kernels
