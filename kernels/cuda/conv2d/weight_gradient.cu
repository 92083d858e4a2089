// The adjoint of a convolution towards its weight, as a product that sums over pixels:
//
//   dweight [channels of dy, entries] = dy^T [channels of dy, pixels] windows [pixels, entries]
//
// a group at a time, a tile of dweight a block (kernels/cuda/tile.cuh). A tile is small beside the
// number of pixels, so those are cut into parts, by the shape alone, to give every multiprocessor
// work; the parts are added up in f64 in their order. The places of the next 16 pixels are found
// once for the whole block, beside the arithmetic.
#include "tapegrad/core/allocator.h"
#include "tapegrad/kernels/cuda/conv2d/correlation.cuh"
#include "tapegrad/kernels/cuda/tile.cuh"
#include "tapegrad/kernels/dispatch.h"

namespace tg::gpu {
namespace {

constexpr int64_t kBlocks = 4 * 132;                        // to aim at
constexpr int64_t kFewestPixels = 256, kMostPixels = 8192;  // of a part

// dweight of a group is [rows, columns].
struct Parts {
  int64_t rows, columns, pixels;
  int64_t count, pixels_of_part;
  int64_t down, across;  // tiles

  explicit Parts(const Correlation& p) {
    rows = p.target.channels;
    columns = p.source.channels * p.h.taps * p.w.taps;
    pixels = p.images * p.h.results * p.w.results;
    down = (rows + kTile - 1) / kTile;
    across = (columns + kTile - 1) / kTile;
    const int64_t wanted = std::max<int64_t>(1, kBlocks / (down * across * p.groups));
    pixels_of_part = std::clamp((pixels + wanted - 1) / wanted, kFewestPixels, kMostPixels);
    count = (pixels + pixels_of_part - 1) / pixels_of_part;
  }
};

// Where a pixel of dy lies, for the first channel of the group, and the window that it saw.
struct PixelPlace {
  int64_t in_target;
  Window window;
};

// sums [parts, groups, rows, columns]
template <class T>
__global__ void __launch_bounds__(kTileThreads)
    weight_gradient_kernel(Correlation p, Parts parts, Computed<T>* sums) {
  using S = Computed<T>;
  __shared__ OperandTile<S> target_tile, source_tile;
  __shared__ PixelPlace places[kDepth];
  const int64_t tile = int64_t(blockIdx.x) % (parts.down * parts.across);
  const int64_t z = int64_t(blockIdx.x) / (parts.down * parts.across);  // part, group
  const int64_t group = z % p.groups, begin = z / p.groups * parts.pixels_of_part;
  const int64_t end = min(begin + parts.pixels_of_part, parts.pixels);
  const int64_t row0 = tile / parts.across * kTile, column0 = tile % parts.across * kTile;
  const T* source = static_cast<const T*>(p.source.data);
  const T* target = static_cast<const T*>(p.target.data);

  // This thread brings one row and one column of pixels first, first + 4, ...
  const int mine = int(threadIdx.x) % kTile, first = int(threadIdx.x) / kTile;
  constexpr int kStep = kTileThreads / kTile;
  const bool row_real = row0 + mine < parts.rows, column_real = column0 + mine < parts.columns;
  const int64_t in_target = (group * parts.rows + row0 + mine) * p.target.channel;
  const Entry e = entry_of(p, column_real ? column0 + mine : 0);
  const auto find_places = [&](int64_t pixel) {
    if (int(threadIdx.x) >= kDepth || pixel + threadIdx.x >= end) return;
    const Result o = result_of(p, pixel + threadIdx.x);
    places[threadIdx.x] = {o.n * p.target.n + o.y * p.target.y + o.x * p.target.x,
                           window_of(p, group, o)};
  };

  TileSums<T> tile_sums;
  find_places(begin);
  for (int64_t pixel = begin; pixel < end; pixel += kDepth) {
    __syncthreads();
    for (int k = first; k < kDepth; k += kStep) {
      const bool real = pixel + k < end;
      target_tile[k][mine] =
          real && row_real ? widen(target[places[k].in_target + in_target]) : S(0);
      source_tile[k][mine] = real && column_real && has(p, places[k].window, e)
                                 ? widen(source[places[k].window.place + e.place])
                                 : S(0);
    }
    __syncthreads();
    find_places(pixel + kDepth);
    tile_sums.add_products(target_tile, source_tile, int(min(int64_t(kDepth), end - pixel)));
  }
  tile_sums.for_each([&](int tile_row, int tile_column, S sum) {
    const int64_t row = row0 + tile_row, column = column0 + tile_column;
    if (row < parts.rows && column < parts.columns)
      sums[(z * parts.rows + row) * parts.columns + column] = sum;
  });
}

// dweight [groups * rows, channels, kh, kw], strides in elements
template <class T>
struct Weights {
  T* data;
  int64_t target, source, y, x;
};

template <class T>
__global__ void add_parts_kernel(Correlation p, Parts parts, const Computed<T>* sums,
                                 Weights<T> weights) {
  const int64_t numel = p.groups * parts.rows * parts.columns;
  for (int64_t i = first_index(); i < numel; i += index_step()) {
    double total = 0;
    for (int64_t part = 0; part < parts.count; ++part) total += double(sums[part * numel + i]);
    const int64_t row = quotient(i, parts.columns);
    const Entry e = entry_of(p, i - row * parts.columns);
    weights.data[row * weights.target + e.channel * weights.source + e.ty * weights.y +
                 e.tx * weights.x] = narrow<T>(Computed<T>(total));
  }
}

}  // namespace

void weight_gradient(const Correlation& p, MutView dweight) {
  if (dweight.numel == 0) return;
  const Parts parts(p);
  visit_any_float(dweight.dtype, [&]<class T>() {
    using S = Computed<T>;
    const size_t bytes = size_t(std::max<int64_t>(1, parts.count) * dweight.numel) * sizeof(S);
    Workspace workspace(bytes, cuda::current_device());
    const int64_t blocks = parts.count * p.groups * parts.down * parts.across;
    if (blocks > 0)
      start<weight_gradient_kernel<T>>({dim3(unsigned(blocks)), kTileThreads}, p, parts,
                                       workspace.as<S>());
    start<add_parts_kernel<T>>({blocks_for_each(dweight.numel), kThreads}, p, parts,
                               workspace.as<S>(),
                               Weights<T>{dweight.as<T>(), dweight.stride(0), dweight.stride(1),
                                          dweight.stride(2), dweight.stride(3)});
  });
}

}  // namespace tg::gpu
