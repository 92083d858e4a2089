// The correlation of correlate.cu for 16-bit images on tensor cores (kernels/cuda/tensor_tile.cuh):
// where the channels of a pixel lie next to each other, eight of one tap are a piece of 16 bytes of
// a window, which is copied from where it lies; padding is a copy of nothing. The kernel is packed
// first, [channels of the target][taps, channels of the source], which is little beside the images.
#include "tapegrad/core/allocator.h"
#include "tapegrad/kernels/cuda/conv2d/correlation.cuh"
#include "tapegrad/kernels/cuda/tensor_tile.cuh"
#include "tapegrad/kernels/dispatch.h"

namespace tg::gpu {
namespace {

// packed [groups * target channels, taps * source channels]
template <class T>
__global__ void pack_kernel(Correlation p, int64_t depth, T* packed) {
  const int64_t numel = p.groups * p.target.channels * depth;
  for (int64_t i = first_index(); i < numel; i += index_step()) {
    const int64_t row = quotient(i, depth), group = quotient(row, p.target.channels);
    const int64_t place = place_in_kernel(p, entry_of(p, i - row * depth));
    packed[i] = static_cast<const T*>(
        p.kernel)[group * p.kernel_group + (row - group * p.target.channels) * p.kernel_target +
                  place];
  }
}

// A thread's part in copying windows: one column of 16-byte pieces, that is eight channels of a
// tap, of windows kRowStep apart.
template <class T>
struct WindowCopier {
  static constexpr int kChunks = tensor::kDepth / 8;
  static constexpr int kRowStep = tensor::kTileThreads / kChunks;
  static constexpr int kCopies = tensor::kTile / kRowStep;
  const Correlation& p;
  Window window[kCopies];
  int channel, tx = 0, ty = 0;  // of the next piece
  uint32_t to;

  __device__ WindowCopier(const Correlation& problem, int64_t group, int first, int pixels)
      : p(problem) {
    const int row = int(threadIdx.x) / kChunks, chunk = int(threadIdx.x) % kChunks;
#pragma unroll
    for (int i = 0; i < kCopies; ++i)  // past the end the last one; nobody writes what comes of it
      window[i] = window_of(p, group, result_of(p, min(first + row + i * kRowStep, pixels - 1)));
    to = swizzled<kChunks>(row, chunk);
    channel = chunk * 8;
    find_tap();
  }
  __device__ void find_tap() {
    while (channel >= p.source.channels) {
      channel -= int(p.source.channels);
      if (++tx < p.w.taps) continue;
      tx = 0;
      ++ty;
    }
  }
  __device__ void copy(uint32_t stage) {
    const int64_t y = ty * p.h.tap_step, x = tx * p.w.tap_step;
    const T* source = static_cast<const T*>(p.source.data);
    const Entry e{channel + y * p.source.y + x * p.source.x, y, x, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const bool real = ty < p.h.taps && has(p, window[i], e);
      copy16_later(stage + to + uint32_t(i * kRowStep * kChunks * 16),
                   real ? source + window[i].place + e.place : source, real ? 16 : 0);
    }
    channel += tensor::kDepth;
    find_tap();
  }
};

// Grid: tiles of a group, 1, groups.
template <class T>
__global__ void __launch_bounds__(tensor::kTileThreads, 2)
    tensor_core_kernel(Correlation p, const T* packed, bool aligned) {
  const int pixels = int(p.images * p.h.results * p.w.results);
  const int channels = int(p.target.channels), group = int(blockIdx.z);
  const int depth = int(p.h.taps * p.w.taps * p.source.channels);
  const tensor::TileOrigin tile = tensor::tile_of_block(pixels, channels);
  WindowCopier<T> windows(p, group, tile.row, pixels);
  tensor::Copier<T, true> kernel(packed + int64_t(group) * channels * depth, depth, tile.column,
                                 channels, depth, int(threadIdx.x));
  tensor::Sums sum;
  const T* bias = static_cast<const T*>(p.bias);
  tensor::start_sums(sum, bias ? bias + group * channels * p.bias_step : nullptr, p.bias_step,
                     tile.column, channels);
  tensor::add_products<T, true, true>(windows, kernel,
                                      (depth + tensor::kDepth - 1) / tensor::kDepth, sum);
  T* target = static_cast<T*>(p.target.data) + int64_t(group) * channels;
  tensor::write_sums<T>(sum, aligned, tile, channels, [&](int row) {
    return row < pixels ? target + place_in_target(p, result_of(p, row)) : nullptr;
  });
}

// Channels next to each other and everything else in steps of eight.
bool in_pieces(const ImageOperand& image) {
  return image.channel == 1 && image.channels > 0 && image.channels % 8 == 0 && image.n % 8 == 0 &&
         image.y % 8 == 0 && image.x % 8 == 0 && aligned16(image.data);
}

template <class T>
void run(const Correlation& p) {
  const int64_t depth = p.h.taps * p.w.taps * p.source.channels;
  const int64_t rows = p.groups * p.target.channels;
  Workspace workspace(size_t(std::max<int64_t>(1, rows * depth)) * sizeof(T),
                      cuda::current_device());
  if (depth > 0)
    start<pack_kernel<T>>({blocks_for_each(rows * depth), kThreads}, p, depth, workspace.as<T>());
  const int64_t tiles = tensor::tiles_of(p.images * p.h.results * p.w.results, p.target.channels);
  start<tensor_core_kernel<T>>(
      {dim3(unsigned(tiles), 1, unsigned(p.groups)), tensor::kTileThreads, tensor::kShared}, p,
      workspace.as<T>(), in_pieces(p.target));
}

}  // namespace

bool tensor_core_correlate(const Correlation& p, DType dtype) {
  if (dtype != DType::f16 && dtype != DType::bf16) return false;
  const int64_t pixels = p.images * p.h.results * p.w.results;
  const int64_t depth = p.h.taps * p.w.taps * p.source.channels;
  if (pixels > tensor::kMostSize || p.groups > 65535 || depth >= tensor::kMostPitch) return false;
  if (!in_pieces(p.source) || p.target.channel != 1) return false;
  if (dtype == DType::f16)
    run<Half>(p);
  else
    run<BFloat16>(p);
  return true;
}

}  // namespace tg::gpu
