// Forward: a row is read from memory once; its mean, its variance and its result are three passes
// over the first-level cache. Backward: rows are cut into blocks, each with its own sums for weight
// and bias, which are added up in the order of the blocks: the bits do not depend on the threads.
#include "tapegrad/kernels/layer_norm.h"

#include <algorithm>
#include <cmath>

#include "tapegrad/kernels/cpu/lab/rungs.h"
#include "tapegrad/kernels/cpu/row_math.h"
#include "tapegrad/kernels/cpu/rows.h"

namespace tg::kernels {
namespace {

// `count` values as the type that is computed in: where they lie, or a copy. null stays null.
template <class T>
class Widened {
 public:
  using W = Wide<T>;
  Widened(const T* from, int64_t count) : copy_(std::is_same_v<T, W> || !from ? 0 : count) {
    if constexpr (std::is_same_v<T, W>) {
      data_ = from;
    } else if (from) {
      data_ = copy_.data();
      assign(from, count);
    }
  }
  // Another row in the same place.
  const W* load(const T* from, int64_t count) {
    if constexpr (std::is_same_v<T, W>)
      data_ = from;
    else
      assign(from, count);
    return data_;
  }
  const W* data() const { return data_; }

 private:
  void assign(const T* from, int64_t count) {
    for (int64_t i = 0; i < count; ++i) copy_[i] = static_cast<W>(from[i]);
  }
  Scratch<W> copy_;
  const W* data_ = nullptr;
};

// The place for a row of results: where it belongs, or a buffer that is converted afterwards.
template <class T>
class RowOut {
 public:
  using W = Wide<T>;
  explicit RowOut(int64_t n) : n_(n), buffer_(std::is_same_v<T, W> ? 0 : n) {}
  W* at(T* to) {
    if constexpr (std::is_same_v<T, W>)
      return to;
    else
      return buffer_.data();
  }
  void done(T* to) {
    if constexpr (!std::is_same_v<T, W>)
      for (int64_t i = 0; i < n_; ++i) to[i] = static_cast<T>(buffer_[i]);
  }

 private:
  int64_t n_;
  Scratch<W> buffer_;
};

template <class W>
void forward_row(int64_t n, const W* x, const W* weight, const W* bias, W* y, W* mean, W* rstd,
                 double eps) {
  if constexpr (std::is_same_v<W, float>) {
    const auto rung = lab::chosen_rung<lab::LayerNormRow>();
    if (rung && n > 0) [[unlikely]]
      return rung({n, x, weight, bias, eps, y, mean, rstd});
  }
  *mean = W(sum_row(
                n, W(0), [](const Packet<W>& v) { return v; }, x) /
            double(n));
  const Packet<W> m = packet::set(*mean);
  const double squares = sum_row(
      n, *mean,
      [&](const Packet<W>& v) {
        const Packet<W> d = packet::psub(v, m);
        return packet::pmul(d, d);
      },
      x);
  *rstd = W(1 / std::sqrt(squares / double(n) + eps));
  const Packet<W> r = packet::set(*rstd);
  for_packets<W>(n, [&](int64_t i, auto access) {
    Packet<W> v = packet::pmul(packet::psub(access.load(x + i), m), r);
    if (weight) v = packet::pmul(v, access.load(weight + i));
    if (bias) v = packet::padd(v, access.load(bias + i));
    access.store(y + i, v);
  });
}

// Adds dy xhat to dweight and dy to dbias, and gives the sums of g and g xhat.
template <class W>
struct RowSums {
  Packet<W> g = packet::set(W(0)), g_xhat = packet::set(W(0));
};
template <class W>
RowSums<W> sums_of_row(int64_t n, const W* x, const W* dy, const W* weight, W mean, W rstd,
                       W* dweight, W* dbias) {
  const Packet<W> m = packet::set(mean), r = packet::set(rstd);
  RowSums<W> sums;
  for_packets<W>(n, [&](int64_t i, auto access) {
    const Packet<W> d = access.load(dy + i);
    const Packet<W> xhat = packet::pmul(packet::psub(access.load(x + i, mean), m), r);
    const Packet<W> d_xhat = packet::pmul(d, xhat);
    if (dweight) access.store(dweight + i, packet::padd(access.load(dweight + i), d_xhat));
    if (dbias) access.store(dbias + i, packet::padd(access.load(dbias + i), d));
    const Packet<W> w = weight ? access.load(weight + i) : packet::set(W(1));
    sums.g = packet::pmadd(d, w, sums.g);
    sums.g_xhat = packet::pmadd(d_xhat, w, sums.g_xhat);
  });
  return sums;
}

template <class W>
void dx_of_row(int64_t n, const W* x, const W* dy, const W* weight, W mean, W rstd,
               const RowSums<W>& sums, W* dx) {
  const Packet<W> m = packet::set(mean), r = packet::set(rstd);
  const Packet<W> g_mean = packet::set(W(packet::sum<W>(sums.g) / W(n)));
  const Packet<W> g_xhat_mean = packet::set(W(packet::sum<W>(sums.g_xhat) / W(n)));
  for_packets<W>(n, [&](int64_t i, auto access) {
    const Packet<W> xhat = packet::pmul(packet::psub(access.load(x + i), m), r);
    Packet<W> g = access.load(dy + i);
    if (weight) g = packet::pmul(g, access.load(weight + i));
    g = packet::psub(packet::psub(g, g_mean), packet::pmul(xhat, g_xhat_mean));
    access.store(dx + i, packet::pmul(r, g));
  });
}

// Adds the blocks' sums [blocks][n] in their order.
template <class T>
void add_blocks(int64_t blocks, int64_t n, const Wide<T>* partial, int64_t step, T* to) {
  using W = Wide<T>;
  parallel_for(n, 1 << 12, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      W sum = partial[i];
      for (int64_t b = 1; b < blocks; ++b) sum += partial[b * step + i];
      to[i] = static_cast<T>(sum);
    }
  });
}

}  // namespace

void layer_norm(Cpu, View x, View weight, View bias, MutView y, MutView mean, MutView rstd,
                double eps) {
  const int64_t rows = mean.numel, n = rows ? x.numel / rows : 0;
  visit_any_float(x.dtype, [&]<class T>() {
    using W = Wide<T>;
    const Widened<T> w(weight.as<T>(), n), b(bias.as<T>(), n);
    parallel_for(rows, row_grain(n), [&](int64_t begin, int64_t end) {
      Widened<T> in(x.as<T>(), n);
      RowOut<T> out(n);
      for (int64_t row = begin; row < end; ++row) {
        T* to = y.as<T>() + row * n;
        forward_row<W>(n, in.load(x.as<T>() + row * n, n), w.data(), b.data(), out.at(to),
                       mean.as<W>() + row, rstd.as<W>() + row, eps);
        out.done(to);
      }
    });
  });
}

void layer_norm_backward(Cpu, View x, View dy, View weight, View mean, View rstd, MutView dx,
                         MutView dweight, MutView dbias) {
  const int64_t rows = mean.numel, n = rows ? x.numel / rows : dweight.numel;
  // At most 64 blocks of at least 16 rows: enough to share out, few enough to add up.
  const int64_t block = std::max<int64_t>(16, (rows + 63) / 64);
  const int64_t blocks = (rows + block - 1) / block;
  visit_any_float(x.dtype, [&]<class T>() {
    using W = Wide<T>;
    const bool sums_wanted = dweight.data || dbias.data;
    const Widened<T> w(weight.as<T>(), n);
    Scratch<W> partial(sums_wanted ? std::max<int64_t>(blocks, 1) * 2 * n : 0);
    if (sums_wanted && blocks == 0) std::fill_n(partial.data(), 2 * n, W(0));
    parallel_for(blocks, 1, [&](int64_t first, int64_t last) {
      for (int64_t at = first; at < last; ++at) {
        Widened<T> in(x.as<T>(), n), gradient(dy.as<T>(), n);
        RowOut<T> out(n);
        W *to_weight = nullptr, *to_bias = nullptr;
        if (sums_wanted) {
          to_weight = partial.data() + at * 2 * n;
          to_bias = to_weight + n;
          std::fill_n(to_weight, 2 * n, W(0));
        }
        for (int64_t row = at * block; row < std::min(rows, (at + 1) * block); ++row) {
          const W* xr = in.load(x.as<T>() + row * n, n);
          const W* gr = gradient.load(dy.as<T>() + row * n, n);
          const W m = mean.as<W>()[row], r = rstd.as<W>()[row];
          const RowSums<W> sums = sums_of_row<W>(n, xr, gr, w.data(), m, r, to_weight, to_bias);
          if (!dx.data) continue;
          T* to = dx.as<T>() + row * n;
          dx_of_row<W>(n, xr, gr, w.data(), m, r, sums, out.at(to));
          out.done(to);
        }
      }
    });
    const int64_t from = std::max<int64_t>(blocks, 1);
    if (dweight.data) add_blocks<T>(from, n, partial.data(), 2 * n, dweight.as<T>());
    if (dbias.data) add_blocks<T>(from, n, partial.data() + n, 2 * n, dbias.as<T>());
  });
}

}  // namespace tg::kernels
