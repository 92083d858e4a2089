#include "tapegrad/kernels/pool2d.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "tapegrad/core/parallel.h"
#include "tapegrad/kernels/copy.h"
#include "tapegrad/kernels/cpu/scratch.h"

namespace tg::kernels {
namespace {

// f16 and bf16 are added up in f32.
template <class T>
using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Channels that are computed together where they lie next to each other: a constant, so that the
// compiler makes whole registers of them.
constexpr int kLanes = 16;
// A piece of parallel work: channels of one image, and how many values make it worth a thread.
constexpr int64_t kChannelBlock = 4 * kLanes, kPieceValues = 16 << 10;

// A [N,C,H,W] tensor of known type.
template <class T>
struct Image {
  T* data;
  int64_t image, channel, row, column;  // strides
  int64_t rows, columns;

  template <class V>
  explicit Image(const V& v)
      : data(v.template as<std::remove_const_t<T>>()),
        image(v.stride(0)),
        channel(v.stride(1)),
        row(v.stride(2)),
        column(v.stride(3)),
        rows(v.size(2)),
        columns(v.size(3)) {}
  T* at(int64_t n, int64_t c, int64_t y, int64_t x) const {
    return data + n * image + c * channel + y * row + x * column;
  }
};

// The positions that one result covers.
struct Box {
  int64_t top, bottom, left, right;
  Box(const PoolAxis& h, const PoolAxis& w, int64_t oy, int64_t ox)
      : top(h.begin(oy)), bottom(h.end(oy)), left(w.begin(ox)), right(w.end(ox)) {}
};

// fn(n, first channel, end channel) for all images and channels, in parallel: blocks of channels
// where they are neighbours, else one at a time.
template <class F>
void for_each_plane(const View& x, bool channel_rows, F&& fn) {
  const int64_t channels = x.size(1), width = channel_rows ? kChannelBlock : 1;
  const int64_t blocks = (channels + width - 1) / width;
  const int64_t values = std::max<int64_t>(1, x.size(2) * x.size(3) * std::min(width, channels));
  parallel_for(x.size(0) * blocks, std::max<int64_t>(1, kPieceValues / values),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t c = i % blocks * width;
                   fn(i / blocks, c, std::min(c + width, channels));
                 }
               });
}

// fn.operator()<lanes>(oy, ox, c) for all results of a plane, kLanes channels at a time as far as
// they go.
template <class F>
void for_each_result(const PoolAxis& h, const PoolAxis& w, int64_t first, int64_t end,
                     bool channel_rows, F&& fn) {
  for (int64_t oy = 0; oy < h.results; ++oy) {
    for (int64_t ox = 0; ox < w.results; ++ox) {
      int64_t c = first;
      if (channel_rows) {
        for (; c + kLanes <= end; c += kLanes) fn.template operator()<kLanes>(oy, ox, c);
      }
      for (; c < end; ++c) fn.template operator()<1>(oy, ox, c);
    }
  }
}

template <class... Views>
bool have_channel_rows(const Views&... views) {
  return ((views.stride(1) == 1) && ...);
}

// ---- maximum ----

// The larger value wins, of equal ones the first, NaN against anything but an earlier NaN.
template <class T, class P, int lanes>
void max_of_window(const Image<const T>& x, int64_t n, int64_t c, const Box& box, int kernel_w,
                   T* y, P* position) {
  Sum<T> best[lanes];
  int32_t best_at[lanes];
  const T* first = x.at(n, c, box.top, box.left);
  for (int i = 0; i < lanes; ++i) best[i] = static_cast<Sum<T>>(first[i]);
  for (int i = 0; i < lanes; ++i) best_at[i] = 0;
  for (int64_t row = box.top; row < box.bottom; ++row) {
    for (int64_t column = box.left; column < box.right; ++column) {
      const T* from = x.at(n, c, row, column);
      const int32_t at =
          static_cast<int32_t>(row - box.top) * kernel_w + static_cast<int32_t>(column - box.left);
      for (int i = 0; i < lanes; ++i) {
        const Sum<T> value = static_cast<Sum<T>>(from[i]);
        const bool wins = !(value <= best[i]) & (best[i] == best[i]);
        best[i] = wins ? value : best[i];
        best_at[i] = wins ? at : best_at[i];
      }
    }
  }
  for (int i = 0; i < lanes; ++i) y[i] = static_cast<T>(best[i]);
  for (int i = 0; i < lanes; ++i) position[i] = static_cast<P>(best_at[i]);
}

template <class T, class P>
void max_forward(View x_view, MutView y_view, MutView position_view, const PoolAxis& h,
                 const PoolAxis& w) {
  const Image<const T> x(x_view);
  const Image<T> y(y_view);
  const Image<P> position(position_view);
  const bool channel_rows = have_channel_rows(x_view, y_view, position_view);
  for_each_plane(x_view, channel_rows, [&](int64_t n, int64_t first, int64_t end) {
    for_each_result(
        h, w, first, end, channel_rows, [&]<int lanes>(int64_t oy, int64_t ox, int64_t c) {
          max_of_window<T, P, lanes>(x, n, c, Box(h, w, oy, ox), static_cast<int>(w.kernel),
                                     y.at(n, c, oy, ox), position.at(n, c, oy, ox));
        });
  });
}

// ---- accumulating gradients ----

// True if every input lies in exactly one window.
bool is_tiling(const PoolAxis& a) {
  return !a.adaptive && a.padding == 0 && a.kernel == a.stride && a.results * a.stride == a.inputs;
}

// The gradient of some channels of one image: set to zero if `clear`, added to by `add`, in f32 for
// the 16-bit types. add(target): an image whose channel 0 is `first`.
template <class T, class F>
void accumulate(const Image<T>& dx, int64_t n, int64_t first, int64_t end, bool clear, F&& add) {
  using S = Sum<T>;
  constexpr bool kDirect = std::is_same_v<T, S>;
  const int64_t width = end - first;
  std::optional<Scratch<S>> sums;
  // As in dx, but dense, with these channels only.
  const int64_t column = kDirect ? dx.column : width, row = kDirect ? dx.row : dx.columns * width;
  const int64_t channel = kDirect ? dx.channel : 1;
  S* base;
  if constexpr (kDirect) {
    base = dx.at(n, first, 0, 0);
  } else {
    sums.emplace(dx.rows * row);
    base = sums->data();
  }
  for (int64_t y = 0; clear && y < dx.rows; ++y) {
    for (int64_t x = 0; x < dx.columns; ++x) {
      S* at = base + y * row + x * column;
      if (channel == 1) {
        std::fill_n(at, width, S(0));
      } else {
        for (int64_t c = 0; c < width; ++c) at[c * channel] = S(0);
      }
    }
  }
  add([=](int64_t c, int64_t y, int64_t x) {
    return base + (c - first) * channel + y * row + x * column;
  });
  if constexpr (!kDirect) {
    for (int64_t y = 0; y < dx.rows; ++y) {
      for (int64_t x = 0; x < dx.columns; ++x) {
        for (int64_t c = 0; c < width; ++c) {
          *dx.at(n, first + c, y, x) = static_cast<T>(base[y * row + x * column + c]);
        }
      }
    }
  }
}

// Few positions: each is compared with all of the window, whole registers at a time. Many: the one
// that was taken is looked up. In a tiling each position is compared, and nothing needs to be there
// before.
template <class T, class P, int lanes, class At>
void scatter_window(const T* dy, const P* position, const Box& box, int kernel_w, int64_t c,
                    bool tiling, At&& at) {
  constexpr int64_t kFew = 16;
  const bool many = lanes == 1 || (box.bottom - box.top) * (box.right - box.left) > kFew;
  if (many && !tiling) {
    for (int i = 0; i < lanes; ++i) {
      const int64_t row = position[i] / kernel_w, column = position[i] % kernel_w;
      *at(c + i, box.top + row, box.left + column) += static_cast<Sum<T>>(dy[i]);
    }
    return;
  }
  Sum<T> gradient[lanes];
  int32_t taken[lanes];
  for (int i = 0; i < lanes; ++i) gradient[i] = static_cast<Sum<T>>(dy[i]);
  for (int i = 0; i < lanes; ++i) taken[i] = position[i];
  for (int64_t row = box.top; row < box.bottom; ++row) {
    for (int64_t column = box.left; column < box.right; ++column) {
      const int32_t here =
          static_cast<int32_t>(row - box.top) * kernel_w + static_cast<int32_t>(column - box.left);
      Sum<T>* to = at(c, row, column);
      if (tiling)
        for (int i = 0; i < lanes; ++i) to[i] = taken[i] == here ? gradient[i] : Sum<T>(0);
      else
        for (int i = 0; i < lanes; ++i) to[i] += taken[i] == here ? gradient[i] : Sum<T>(0);
    }
  }
}

// dy, or a copy whose channels are neighbours where only dy's are not: the gradient of an image
// that was flattened.
class NeighbourChannels {
 public:
  NeighbourChannels(const View& dy, bool wanted) : view_(dy) {
    if (!wanted || dy.stride(1) == 1) return;
    strides_ = {dy.size(1) * dy.size(2) * dy.size(3), 1, dy.size(1) * dy.size(3), dy.size(1)};
    memory_.emplace(dy.numel * int64_t(size_of(dy.dtype)));
    const MutView copied{{memory_->data(), dy.dtype, dy.shape_ptr, &strides_, dy.numel}};
    copy(Cpu{}, dy, copied);
    view_ = copied;
  }
  NeighbourChannels(const NeighbourChannels&) = delete;
  const View& view() const { return view_; }

 private:
  View view_;
  Shape strides_;
  std::optional<Scratch<char>> memory_;
};

template <class T, class P>
void scatter(View any_dy, View position_view, MutView dx_view, const PoolAxis& h,
             const PoolAxis& w) {
  const NeighbourChannels neighbours(any_dy, have_channel_rows(position_view, dx_view));
  const View dy_view = neighbours.view();
  const bool tiling = is_tiling(h) && is_tiling(w);
  const Image<const T> dy(dy_view);
  const Image<const P> position(position_view);
  const Image<T> dx(dx_view);
  const bool channel_rows = have_channel_rows(dy_view, position_view, dx_view);
  for_each_plane(dx_view, channel_rows, [&](int64_t n, int64_t first, int64_t end) {
    accumulate(dx, n, first, end, !tiling, [&](auto&& at) {
      for_each_result(h, w, first, end, channel_rows,
                      [&]<int lanes>(int64_t oy, int64_t ox, int64_t c) {
                        scatter_window<T, P, lanes>(dy.at(n, c, oy, ox), position.at(n, c, oy, ox),
                                                    Box(h, w, oy, ox), static_cast<int>(w.kernel),
                                                    c, tiling, at);
                      });
    });
  });
}

template <class T, class P>
void gather(View x_view, View position_view, MutView y_view, const PoolAxis& h, const PoolAxis& w) {
  const Image<const T> x(x_view);
  const Image<const P> position(position_view);
  const Image<T> y(y_view);
  for_each_plane(x_view, false, [&](int64_t n, int64_t first, int64_t end) {
    for_each_result(h, w, first, end, false, [&]<int lanes>(int64_t oy, int64_t ox, int64_t c) {
      const int64_t taken = *position.at(n, c, oy, ox);
      *y.at(n, c, oy, ox) =
          *x.at(n, c, h.begin(oy) + taken / w.kernel, w.begin(ox) + taken % w.kernel);
    });
  });
}

// ---- average ----

// Row sums, then their sum: a window may be a whole image.
template <class T, int lanes>
void average_of_window(const Image<const T>& x, int64_t n, int64_t c, const Box& box, Sum<T> size,
                       T* y) {
  Sum<T> total[lanes] = {};
  for (int64_t row = box.top; row < box.bottom; ++row) {
    Sum<T> sum[lanes] = {};
    for (int64_t column = box.left; column < box.right; ++column) {
      const T* from = x.at(n, c, row, column);
      for (int i = 0; i < lanes; ++i) sum[i] += static_cast<Sum<T>>(from[i]);
    }
    for (int i = 0; i < lanes; ++i) total[i] += sum[i];
  }
  for (int i = 0; i < lanes; ++i) y[i] = static_cast<T>(total[i] / size);
}

template <class T>
void average(View x_view, MutView y_view, const PoolAxis& h, const PoolAxis& w,
             bool count_padding) {
  const Image<const T> x(x_view);
  const Image<T> y(y_view);
  const bool channel_rows = have_channel_rows(x_view, y_view);
  for_each_plane(x_view, channel_rows, [&](int64_t n, int64_t first, int64_t end) {
    for_each_result(
        h, w, first, end, channel_rows, [&]<int lanes>(int64_t oy, int64_t ox, int64_t c) {
          average_of_window<T, lanes>(x, n, c, Box(h, w, oy, ox),
                                      Sum<T>(size_of_window(h, w, oy, ox, count_padding)),
                                      y.at(n, c, oy, ox));
        });
  });
}

template <class T>
void spread(View dy_view, MutView dx_view, const PoolAxis& h, const PoolAxis& w,
            bool count_padding) {
  const Image<const T> dy(dy_view);
  const Image<T> dx(dx_view);
  const bool channel_rows = have_channel_rows(dy_view, dx_view);
  for_each_plane(dx_view, channel_rows, [&](int64_t n, int64_t first, int64_t end) {
    accumulate(dx, n, first, end, true, [&](auto&& at) {
      for_each_result(h, w, first, end, channel_rows,
                      [&]<int lanes>(int64_t oy, int64_t ox, int64_t c) {
                        const Box box(h, w, oy, ox);
                        const Sum<T> size = Sum<T>(size_of_window(h, w, oy, ox, count_padding));
                        const T* from = dy.at(n, c, oy, ox);
                        Sum<T> share[lanes];
                        for (int i = 0; i < lanes; ++i)
                          share[i] = static_cast<Sum<T>>(from[i]) / size;
                        for (int64_t row = box.top; row < box.bottom; ++row) {
                          for (int64_t column = box.left; column < box.right; ++column) {
                            Sum<T>* to = at(c, row, column);
                            for (int i = 0; i < lanes; ++i) to[i] += share[i];
                          }
                        }
                      });
    });
  });
}

}  // namespace

void max_pool2d(Cpu, View x, MutView y, MutView position, const PoolAxis& h, const PoolAxis& w) {
  visit_any_float(x.dtype, [&]<class T>() {
    visit_position(position.dtype, [&]<class P>() { max_forward<T, P>(x, y, position, h, w); });
  });
}

void max_pool2d_scatter(Cpu, View dy, View position, MutView dx, const PoolAxis& h,
                        const PoolAxis& w) {
  visit_any_float(dy.dtype, [&]<class T>() {
    visit_position(position.dtype, [&]<class P>() { scatter<T, P>(dy, position, dx, h, w); });
  });
}

void max_pool2d_gather(Cpu, View x, View position, MutView y, const PoolAxis& h,
                       const PoolAxis& w) {
  visit_any_float(x.dtype, [&]<class T>() {
    visit_position(position.dtype, [&]<class P>() { gather<T, P>(x, position, y, h, w); });
  });
}

void avg_pool2d(Cpu, View x, MutView y, const PoolAxis& h, const PoolAxis& w, bool count_padding) {
  visit_any_float(x.dtype, [&]<class T>() { average<T>(x, y, h, w, count_padding); });
}

void avg_pool2d_backward(Cpu, View dy, MutView dx, const PoolAxis& h, const PoolAxis& w,
                         bool count_padding) {
  visit_any_float(dy.dtype, [&]<class T>() { spread<T>(dy, dx, h, w, count_padding); });
}

}  // namespace tg::kernels
