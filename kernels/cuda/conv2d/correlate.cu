// A correlation of images as a product whose left operand is never written down:
//
//   target [pixels, channels] = windows [pixels, taps * channels] kernel [taps * channels,
//   channels]
//
// a group at a time, a tile of the target a block (kernels/cuda/tile.cuh). A thread brings the same
// entry of four windows each step, so that a window's place is found once and an entry's once a
// step; where channels lie next to each other, 16 threads read neighbours. Padding is zero.
//
// Groups of few channels would leave most of a tile empty: there a thread makes a result of its
// own.
#include "tapegrad/kernels/cuda/conv2d/correlation.cuh"
#include "tapegrad/kernels/cuda/start.cuh"
#include "tapegrad/kernels/cuda/tile.cuh"
#include "tapegrad/kernels/dispatch.h"

namespace tg::gpu {
namespace {

constexpr int64_t kFewChannels = 4;

template <class T>
__device__ inline void write(const Correlation& p, int64_t group, int64_t row, int64_t channel,
                             Computed<T> sum) {
  const int64_t c = group * p.target.channels + channel;
  if (p.bias) sum += widen(static_cast<const T*>(p.bias)[c * p.bias_step]);
  static_cast<T*>(p.target.data)[place_in_target(p, result_of(p, row)) + c * p.target.channel] =
      narrow<T>(sum);
}

// Grid: tiles of all groups, channels innermost.
template <class T>
__global__ void __launch_bounds__(kTileThreads) correlate_kernel(Correlation p) {
  using S = Computed<T>;
  __shared__ OperandTile<S> source_tile, kernel_tile;
  const int64_t pixels = p.images * p.h.results * p.w.results;
  const int64_t depth = p.h.taps * p.w.taps * p.source.channels;
  const int64_t across = (p.target.channels + kTile - 1) / kTile;
  const int64_t down = (pixels + kTile - 1) / kTile;
  const int64_t of_group = int64_t(blockIdx.x) % (across * down);
  const int64_t group = int64_t(blockIdx.x) / (across * down);
  const int64_t row0 = of_group / across * kTile, column0 = of_group % across * kTile;
  const T* source = static_cast<const T*>(p.source.data);
  const T* kernel = static_cast<const T*>(p.kernel) + group * p.kernel_group;

  // This thread brings entry `mine` of rows and columns `first`, first + 16, ...
  const int mine = int(threadIdx.x) % kDepth, first = int(threadIdx.x) / kDepth;
  constexpr int kStep = kTileThreads / kDepth, kCopies = kTile / kStep;
  Window window[kCopies];
#pragma unroll
  for (int i = 0; i < kCopies; ++i)  // past the end the last one; nobody writes what comes of it
    window[i] = window_of(p, group, result_of(p, min(row0 + first + i * kStep, pixels - 1)));
  TileSums<T> sums;
  for (int64_t k0 = 0; k0 < depth; k0 += kDepth) {
    const bool real = k0 + mine < depth;
    const Entry e = entry_of(p, real ? k0 + mine : 0);
    const T* weights = kernel + place_in_kernel(p, e);
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int64_t column = column0 + first + i * kStep;
      source_tile[mine][first + i * kStep] =
          real && has(p, window[i], e) ? widen(source[window[i].place + e.place]) : S(0);
      kernel_tile[mine][first + i * kStep] =
          real && column < p.target.channels ? widen(weights[column * p.kernel_target]) : S(0);
    }
    __syncthreads();
    sums.add_products(source_tile, kernel_tile, int(min(int64_t(kDepth), depth - k0)));
    __syncthreads();
  }
  sums.for_each([&](int row, int column, S sum) {
    if (row0 + row < pixels && column0 + column < p.target.channels)
      write<T>(p, group, row0 + row, column0 + column, sum);
  });
}

template <class T>
__global__ void few_channels_kernel(Correlation p) {
  const int64_t channels = p.groups * p.target.channels;
  const int64_t results = p.images * p.h.results * p.w.results * channels;
  for (int64_t i = first_index(); i < results; i += index_step()) {
    const int64_t row = quotient(i, channels), c = i - row * channels;
    const int64_t group = quotient(c, p.target.channels), channel = c - group * p.target.channels;
    const Window window = window_of(p, group, result_of(p, row));
    const T* source = static_cast<const T*>(p.source.data) + window.place;
    const T* kernel =
        static_cast<const T*>(p.kernel) + group * p.kernel_group + channel * p.kernel_target;
    Computed<T> sum = 0;
    for (int64_t k = 0; k < p.h.taps * p.w.taps * p.source.channels; ++k) {
      const Entry e = entry_of(p, k);
      if (has(p, window, e))
        sum = std::fma(widen(source[e.place]), widen(kernel[place_in_kernel(p, e)]), sum);
    }
    write<T>(p, group, row, channel, sum);
  }
}

}  // namespace

void correlate(const Correlation& p, DType dtype) {
  const int64_t pixels = p.images * p.h.results * p.w.results;
  const int64_t results = pixels * p.groups * p.target.channels;
  if (results == 0) return;
  if (p.target.channels > kFewChannels && tensor_core_correlate(p, dtype)) return;
  const int64_t tiles = ((pixels + kTile - 1) / kTile) * ((p.target.channels + kTile - 1) / kTile);
  visit_any_float(dtype, [&]<class T>() {
    if (p.target.channels <= kFewChannels)
      start<few_channels_kernel<T>>({blocks_for_each(results), kThreads}, p);
    else
      start<correlate_kernel<T>>({dim3(unsigned(tiles * p.groups)), kTileThreads}, p);
  });
}

}  // namespace tg::gpu
