#include "tapegrad/kernels/batch_norm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "tapegrad/core/parallel.h"
#include "tapegrad/kernels/cpu/convert.h"
#include "tapegrad/kernels/cpu/gemm/simd.h"
#include "tapegrad/kernels/cpu/scratch.h"

namespace tg::kernels {
namespace {

template <class S>
using Vector = gemm::Simd<S>;

// ---- registers ----

// How a register's worth of values is reached: all of it, or the last of a row.
template <class S>
struct Whole {
  auto load(const S* p) const { return Vector<S>::load(p); }
  void store(S* p, typename Vector<S>::Register v) const { Vector<S>::store(p, v); }
};
template <class S>
struct Part {
  typename Vector<S>::Mask mask;
  auto load(const S* p) const { return Vector<S>::load(p, mask); }
  void store(S* p, typename Vector<S>::Register v) const { Vector<S>::store(p, v, mask); }
};
template <class S, class F>
void for_each_register(int64_t n, F&& fn) {
  constexpr int64_t kLanes = Vector<S>::kLanes;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) fn(i, Whole<S>{});
  if (i < n) fn(i, Part<S>{Vector<S>::first(static_cast<int>(n - i))});
}

// A number of a channel: of the channel that each lane belongs to, or the same for all lanes.
template <class S>
struct PerLane {
  const S* values;
  template <class Reach>
  auto at(int64_t i, const Reach& reach) const {
    return reach.load(values + i);
  }
};
template <class S>
struct Same {
  typename Vector<S>::Register value;
  explicit Same(const S* p) : value(Vector<S>::broadcast(p)) {}
  template <class Reach>
  auto at(int64_t, const Reach&) const {
    return value;
  }
};

// sums[i] += x[i]
template <class S>
void add_row(const S* x, int64_t n, S* sums) {
  for_each_register<S>(n, [&](int64_t i, auto reach) {
    reach.store(sums + i, Vector<S>::add(reach.load(sums + i), reach.load(x + i)));
  });
}
// sums[i] += (x[i] - mean)^2
template <class S, class Mean>
void add_squares(const S* x, int64_t n, Mean minus_mean, S* sums) {
  for_each_register<S>(n, [&](int64_t i, auto reach) {
    const auto d = Vector<S>::add(reach.load(x + i), minus_mean.at(i, reach));
    reach.store(sums + i, Vector<S>::multiply_add(d, d, reach.load(sums + i)));
  });
}
// sums[i] += dy[i] and products[i] += dy[i] (x[i] - mean)
template <class S, class Mean>
void add_products(const S* dy, const S* x, int64_t n, Mean minus_mean, S* sums, S* products) {
  for_each_register<S>(n, [&](int64_t i, auto reach) {
    const auto g = reach.load(dy + i);
    const auto d = Vector<S>::add(reach.load(x + i), minus_mean.at(i, reach));
    reach.store(sums + i, Vector<S>::add(reach.load(sums + i), g));
    reach.store(products + i, Vector<S>::multiply_add(g, d, reach.load(products + i)));
  });
}
// y[i] = (x[i] - mean) * scale + shift
template <class S, class Number>
void normalize(const S* x, int64_t n, Number minus_mean, Number scale, Number shift, S* y) {
  for_each_register<S>(n, [&](int64_t i, auto reach) {
    const auto d = Vector<S>::add(reach.load(x + i), minus_mean.at(i, reach));
    reach.store(y + i, Vector<S>::multiply_add(d, scale.at(i, reach), shift.at(i, reach)));
  });
}
// dx[i] = dy[i] * scale + (x[i] - mean) * slope + shift
template <class S, class Number>
void combine(const S* dy, const S* x, int64_t n, Number minus_mean, Number scale, Number slope,
             Number shift, S* dx) {
  for_each_register<S>(n, [&](int64_t i, auto reach) {
    const auto d = Vector<S>::add(reach.load(x + i), minus_mean.at(i, reach));
    const auto rest = Vector<S>::multiply_add(d, slope.at(i, reach), shift.at(i, reach));
    reach.store(dx + i, Vector<S>::multiply_add(reach.load(dy + i), scale.at(i, reach), rest));
  });
}

// ---- layout ----

// A tensor as runs of values that follow each other: rows of all channels (channel_rows), or the
// plane of one channel of one image. Runs are grouped to pieces of work that fit the cache; which
// pieces there are depends on the shape alone.
struct Layout {
  bool channel_rows = false;
  int64_t channels = 0, rows = 0, row_size = 0;  // rows * row_size values
  int64_t rows_per_piece = 1;

  explicit Layout(const View& x) {
    constexpr int64_t kPieceValues = 16 << 10;
    channels = x.size(1);
    channel_rows = channels_are_innermost(x);
    row_size = channel_rows ? channels : x.numel / std::max<int64_t>(1, x.size(0) * channels);
    rows = row_size == 0 ? 0 : x.numel / row_size;
    rows_per_piece = std::clamp<int64_t>(kPieceValues / std::max<int64_t>(1, row_size), 1, 512);
  }
  int64_t values_per_channel() const { return channels == 0 ? 0 : rows * row_size / channels; }
  int64_t pieces() const { return (rows + rows_per_piece - 1) / rows_per_piece; }
  int64_t rows_of(int64_t piece) const {
    return std::min(rows_per_piece, rows - piece * rows_per_piece);
  }
  int64_t channel_of(int64_t row) const { return channel_rows ? 0 : row % channels; }
};

// Reads runs of a tensor as S: in place, or converted into a buffer.
template <class S>
class Reader {
 public:
  Reader(const View& x, int64_t most) : data_(static_cast<const char*>(x.data)) {
    size_ = static_cast<int64_t>(size_of(x.dtype));
    if (x.dtype == dtype_of<S>()) return;
    convert_ = convert_run(x.dtype, dtype_of<S>());
    buffer_.emplace(most);
  }
  const S* read(int64_t offset, int64_t n) {
    const char* from = data_ + offset * size_;
    if (!convert_) return reinterpret_cast<const S*>(from);
    convert_(from, buffer_->data(), n);
    return buffer_->data();
  }

 private:
  const char* data_;
  int64_t size_;
  ConvertRun convert_ = nullptr;
  std::optional<Scratch<S>> buffer_;
};
template <class S>
class Writer {
 public:
  Writer(const MutView& y, int64_t most) : data_(static_cast<char*>(y.data)) {
    size_ = static_cast<int64_t>(size_of(y.dtype));
    if (y.dtype == dtype_of<S>()) return;
    convert_ = convert_run(dtype_of<S>(), y.dtype);
    buffer_.emplace(most);
  }
  S* begin(int64_t offset) {
    at_ = data_ + offset * size_;
    return convert_ ? buffer_->data() : reinterpret_cast<S*>(at_);
  }
  void end(int64_t n) {
    if (convert_) convert_(buffer_->data(), at_, n);
  }

 private:
  char* data_;
  char* at_ = nullptr;
  int64_t size_;
  ConvertRun convert_ = nullptr;
  std::optional<Scratch<S>> buffer_;
};

// The numbers of all channels, converted; `missing` where there are none.
template <class S>
std::vector<S> channel_values(const View& v, int64_t channels, double missing) {
  std::vector<S> values(static_cast<size_t>(channels), static_cast<S>(missing));
  if (!v.data) return values;
  const ConvertRun convert = convert_run(v.dtype, dtype_of<S>());
  const char* from = static_cast<const char*>(v.data);
  for (int64_t c = 0; c < channels; ++c) {
    convert(from + c * v.stride(0) * static_cast<int64_t>(size_of(v.dtype)), &values[size_t(c)], 1);
  }
  return values;
}
template <class S>
void write_channels(const std::vector<S>& values, const MutView& to) {
  if (!to.data) return;
  const ConvertRun convert = convert_run(dtype_of<S>(), to.dtype);
  char* at = static_cast<char*>(to.data);
  for (size_t c = 0; c < values.size(); ++c) {
    convert(&values[c], at + int64_t(c) * to.stride(0) * int64_t(size_of(to.dtype)), 1);
  }
}
template <class S>
std::vector<S> negated(std::vector<S> values) {
  for (S& v : values) v = -v;
  return values;
}

// ---- sums ----

// A plane is summed as rows of this many lanes, so that one code sums both layouts.
constexpr int64_t kPlaneLanes = 32;

// Calls add(offset, n, sums) for the rows of a run in the form that add_row and its kin take, and
// gives the sum of all lanes: for the plane of one channel.
template <class S, size_t kSums, class F>
std::array<S, kSums> sum_plane(int64_t n, F&& add) {
  S lanes[kSums][kPlaneLanes] = {};
  int64_t i = 0;
  for (; i + kPlaneLanes <= n; i += kPlaneLanes) add(i, kPlaneLanes, lanes);
  if (i < n) add(i, n - i, lanes);
  std::array<S, kSums> total{};
  for (size_t k = 0; k < kSums; ++k) {
    for (int64_t width = kPlaneLanes / 2; width > 0; width /= 2) {
      for (int64_t j = 0; j < width; ++j) lanes[k][j] += lanes[k][j + width];
    }
    total[k] = lanes[k][0];
  }
  return total;
}

// The count, mean and sum of squared distances from the mean of some values, and of two sets
// together: accurate for any mean, and each value is read from memory once.
struct Moments {
  double count = 0, mean = 0, squares = 0;
  void add(const Moments& o) {
    if (o.count == 0) return;
    const double total = count + o.count, delta = o.mean - mean;
    mean += delta * (o.count / total);
    squares += o.squares + delta * delta * (count * o.count / total);
    count = total;
  }
};

template <class S>
void moments_of_rows(const S* x, int64_t rows, int64_t channels, Moments* moments) {
  const size_t n = static_cast<size_t>(channels);
  std::vector<S> sums(n), squares(n);
  for (int64_t r = 0; r < rows; ++r) add_row(x + r * channels, channels, sums.data());
  for (S& sum : sums) sum = -sum / static_cast<S>(rows);  // now minus the mean
  for (int64_t r = 0; r < rows; ++r) {
    add_squares(x + r * channels, channels, PerLane<S>{sums.data()}, squares.data());
  }
  for (size_t c = 0; c < n; ++c) {
    moments[c] = {static_cast<double>(rows), -static_cast<double>(sums[c]),
                  static_cast<double>(squares[c])};
  }
}

template <class S>
Moments moments_of_plane(const S* x, int64_t n) {
  const S sum = sum_plane<S, 1>(
      n, [&](int64_t i, int64_t width, auto& lanes) { add_row(x + i, width, lanes[0]); })[0];
  const S minus_mean = -sum / static_cast<S>(n);
  const S squares = sum_plane<S, 1>(n, [&](int64_t i, int64_t width, auto& lanes) {
    add_squares(x + i, width, Same<S>(&minus_mean), lanes[0]);
  })[0];
  return {static_cast<double>(n), -static_cast<double>(minus_mean), static_cast<double>(squares)};
}

// In channel rows a piece gives a result for each channel, else for each of its rows.
int64_t results_per_piece(const Layout& l) {
  return l.channel_rows ? l.channels : l.rows_per_piece;
}

// fn(piece, offset of its first value, rows) for all pieces, in parallel.
template <class F>
void for_each_piece(const Layout& l, F&& fn) {
  parallel_for(l.pieces(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      fn(p, p * l.rows_per_piece * l.row_size, l.rows_of(p));
    }
  });
}

// Adds the pieces' results up in their order, for each channel.
template <class Result, class F>
void for_each_result(const Layout& l, const std::vector<Result>& results, F&& fn) {
  for (int64_t p = 0; p < l.pieces(); ++p) {
    const int64_t count = l.channel_rows ? l.channels : l.rows_of(p);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t channel = l.channel_rows ? i : l.channel_of(p * l.rows_per_piece + i);
      fn(static_cast<size_t>(channel), results[static_cast<size_t>(p * results_per_piece(l) + i)]);
    }
  }
}

template <class S>
std::vector<Moments> moments(const View& x) {
  const Layout l(x);
  std::vector<Moments> parts(static_cast<size_t>(l.pieces() * results_per_piece(l)));
  for_each_piece(l, [&](int64_t piece, int64_t offset, int64_t rows) {
    Reader<S> reader(x, rows * l.row_size);
    const S* values = reader.read(offset, rows * l.row_size);
    Moments* to = parts.data() + piece * results_per_piece(l);
    if (l.channel_rows) return moments_of_rows(values, rows, l.channels, to);
    for (int64_t r = 0; r < rows; ++r) {
      to[r] = moments_of_plane(values + r * l.row_size, l.row_size);
    }
  });
  std::vector<Moments> all(static_cast<size_t>(l.channels));
  for_each_result(l, parts, [&](size_t c, const Moments& part) { all[c].add(part); });
  return all;
}

template <class S>
void statistics(const View& x, double eps, const MutView& mean, const MutView& rstd,
                double momentum, const MutView& running_mean, const MutView& running_var) {
  const std::vector<Moments> all = moments<S>(x);
  std::vector<double> old_mean = channel_values<double>(running_mean, x.size(1), 0);
  std::vector<double> old_var = channel_values<double>(running_var, x.size(1), 0);
  for (size_t c = 0; c < all.size(); ++c) {
    const Moments& m = all[c];
    mean.as<S>()[c] = static_cast<S>(m.mean);
    rstd.as<S>()[c] = static_cast<S>(1 / std::sqrt(m.squares / m.count + eps));
    old_mean[c] = (1 - momentum) * old_mean[c] + momentum * m.mean;
    old_var[c] = (1 - momentum) * old_var[c] + momentum * (m.squares / (m.count - 1));
  }
  write_channels(old_mean, running_mean);
  write_channels(old_var, running_var);
}

// ---- passes that write ----

template <class S>
void apply(const View& x, const View& mean, const View& rstd, const View& weight, const View& bias,
           const MutView& y) {
  const Layout l(x);
  const std::vector<S> minus_mean = negated(channel_values<S>(mean, l.channels, 0));
  const std::vector<S> shift = channel_values<S>(bias, l.channels, 0);
  std::vector<S> scale = channel_values<S>(weight, l.channels, 1);
  for (size_t c = 0; c < scale.size(); ++c) scale[c] *= rstd.as<S>()[c];
  for_each_piece(l, [&](int64_t, int64_t offset, int64_t rows) {
    Reader<S> reader(x, rows * l.row_size);
    Writer<S> writer(y, rows * l.row_size);
    const S* from = reader.read(offset, rows * l.row_size);
    S* to = writer.begin(offset);
    for (int64_t r = 0, done = 0; r < rows; ++r, done += l.row_size) {
      if (l.channel_rows) {
        normalize(from + done, l.row_size, PerLane<S>{minus_mean.data()}, PerLane<S>{scale.data()},
                  PerLane<S>{shift.data()}, to + done);
      } else {
        const int64_t c = l.channel_of(offset / l.row_size + r);
        normalize(from + done, l.row_size, Same<S>(&minus_mean[size_t(c)]),
                  Same<S>(&scale[size_t(c)]), Same<S>(&shift[size_t(c)]), to + done);
      }
    }
    writer.end(rows * l.row_size);
  });
}

template <class S>
struct GradientSums {
  S dy = 0, product = 0;  // sum of dy, and of dy (x - mean)
};

template <class S>
void sum_gradients(const Layout& l, const S* dy, const S* x, int64_t first_row, int64_t rows,
                   const std::vector<S>& minus_mean, GradientSums<S>* to) {
  if (l.channel_rows) {
    const size_t n = static_cast<size_t>(l.channels);
    std::vector<S> sums(n), products(n);
    for (int64_t r = 0; r < rows; ++r) {
      add_products(dy + r * l.row_size, x + r * l.row_size, l.row_size,
                   PerLane<S>{minus_mean.data()}, sums.data(), products.data());
    }
    for (size_t c = 0; c < n; ++c) to[c] = {sums[c], products[c]};
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    const Same<S> mean(&minus_mean[static_cast<size_t>(l.channel_of(first_row + r))]);
    const auto both = sum_plane<S, 2>(l.row_size, [&](int64_t i, int64_t width, auto& lanes) {
      const int64_t at = r * l.row_size + i;
      add_products(dy + at, x + at, width, mean, lanes[0], lanes[1]);
    });
    to[r] = {both[0], both[1]};
  }
}

// dx = dy * scale + (x - mean) * slope + shift, a number of each for every channel.
template <class S>
struct Coefficients {
  std::vector<S> minus_mean, scale, slope, shift;
};

template <class S>
void write_gradient(const Layout& l, const View& x, const View& dy, const Coefficients<S>& k,
                    const MutView& dx) {
  for_each_piece(l, [&](int64_t, int64_t offset, int64_t rows) {
    Reader<S> x_reader(x, rows * l.row_size), dy_reader(dy, rows * l.row_size);
    Writer<S> writer(dx, rows * l.row_size);
    const S* xs = x_reader.read(offset, rows * l.row_size);
    const S* dys = dy_reader.read(offset, rows * l.row_size);
    S* to = writer.begin(offset);
    for (int64_t r = 0, done = 0; r < rows; ++r, done += l.row_size) {
      if (l.channel_rows) {
        combine(dys + done, xs + done, l.row_size, PerLane<S>{k.minus_mean.data()},
                PerLane<S>{k.scale.data()}, PerLane<S>{k.slope.data()}, PerLane<S>{k.shift.data()},
                to + done);
      } else {
        const size_t c = static_cast<size_t>(l.channel_of(offset / l.row_size + r));
        combine(dys + done, xs + done, l.row_size, Same<S>(&k.minus_mean[c]), Same<S>(&k.scale[c]),
                Same<S>(&k.slope[c]), Same<S>(&k.shift[c]), to + done);
      }
    }
    writer.end(rows * l.row_size);
  });
}

template <class S>
void backward(const View& x, const View& dy, const View& mean, const View& rstd, const View& weight,
              bool through_statistics, const MutView& dx, const MutView& dweight,
              const MutView& dbias) {
  const Layout l(x);
  Coefficients<S> k;
  k.minus_mean = negated(channel_values<S>(mean, l.channels, 0));
  std::vector<double> sums(static_cast<size_t>(l.channels)), products(sums.size());
  if (through_statistics || dweight.data || dbias.data) {
    std::vector<GradientSums<S>> parts(static_cast<size_t>(l.pieces() * results_per_piece(l)));
    for_each_piece(l, [&](int64_t piece, int64_t offset, int64_t rows) {
      Reader<S> x_reader(x, rows * l.row_size), dy_reader(dy, rows * l.row_size);
      sum_gradients(l, dy_reader.read(offset, rows * l.row_size),
                    x_reader.read(offset, rows * l.row_size), piece * l.rows_per_piece, rows,
                    k.minus_mean, parts.data() + piece * results_per_piece(l));
    });
    for_each_result(l, parts, [&](size_t c, const GradientSums<S>& part) {
      sums[c] += static_cast<double>(part.dy);
      products[c] += static_cast<double>(part.product);
    });
  }
  write_channels(sums, dbias);
  std::vector<double> weight_gradient = products;
  for (size_t c = 0; c < products.size(); ++c) weight_gradient[c] *= double(rstd.as<S>()[c]);
  write_channels(weight_gradient, dweight);
  if (!dx.data) return;
  // Without x, which may be infinite: the forward with mean and bias 0.
  if (!through_statistics) return apply<S>(dy, View{}, rstd, weight, View{}, dx);
  const double n = static_cast<double>(l.values_per_channel());
  k.scale = channel_values<S>(weight, l.channels, 1);
  k.slope.resize(sums.size());
  k.shift.resize(sums.size());
  for (size_t c = 0; c < sums.size(); ++c) {
    const double r = double(rstd.as<S>()[c]), scale = double(k.scale[c]) * r;
    k.scale[c] = static_cast<S>(scale);
    k.slope[c] = static_cast<S>(-scale * r * r * products[c] / n);
    k.shift[c] = static_cast<S>(-scale * sums[c] / n);
  }
  write_gradient(l, x, dy, k, dx);
}

template <class F>
void visit_computed(DType t, F&& fn) {
  check<DTypeError>(is_floating(t), "works on floats, got", t);
  if (t == DType::f64) return fn.template operator()<double>();
  fn.template operator()<float>();
}

}  // namespace

void batch_norm_statistics(Cpu, View x, double eps, MutView mean, MutView rstd, double momentum,
                           MutView running_mean, MutView running_var) {
  visit_computed(x.dtype, [&]<class S>() {
    statistics<S>(x, eps, mean, rstd, momentum, running_mean, running_var);
  });
}

void batch_norm_apply(Cpu, View x, View mean, View rstd, View weight, View bias, MutView y) {
  visit_computed(x.dtype, [&]<class S>() { apply<S>(x, mean, rstd, weight, bias, y); });
}

void batch_norm_backward(Cpu, View x, View dy, View mean, View rstd, View weight,
                         bool through_statistics, MutView dx, MutView dweight, MutView dbias) {
  visit_computed(x.dtype, [&]<class S>() {
    backward<S>(x, dy, mean, rstd, weight, through_statistics, dx, dweight, dbias);
  });
}

}  // namespace tg::kernels
