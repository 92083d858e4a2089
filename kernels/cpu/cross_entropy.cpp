// One pass over the logits each way: a row is read from memory once and kept in the first-level
// cache for its maximum, its exponentials and its result.
#include "tapegrad/kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tapegrad/kernels/cpu/row_math.h"
#include "tapegrad/kernels/cpu/rows.h"

namespace tg::kernels {
namespace {

// The b_c of the header for one row.
template <class W>
struct Coefficients {
  Coefficients(View weight, int64_t classes, double smoothing)
      : weights(weight.as<W>()), keep(1 - smoothing), spread(smoothing / double(classes)) {
    total = weights ? sum_row(
                          classes, W(0), [](const Packet<W>& w) { return w; }, weights)
                    : double(classes);
  }
  double of_target(int64_t t) const { return keep * weight_of(t); }
  double weight_of(int64_t t) const { return weights ? double(weights[t]) : 1.0; }
  double sum(int64_t t) const { return of_target(t) + spread * total; }

  const W* weights;  // null: all 1
  double keep, spread, total;
};

// sum over c of w_c (x_c - max)
template <class W>
double weighted_sum(int64_t n, const W* x, W max, const W* weights) {
  const Packet<W> shift = packet::set(max);
  if (weights) {
    return sum_row(
        n, W(0),
        [&](const Packet<W>& v, const Packet<W>& w) {
          return packet::pmul(packet::psub(v, shift), w);
        },
        x, weights);
  }
  return sum_row(
      n, max, [&](const Packet<W>& v) { return packet::psub(v, shift); }, x);
}

template <class W>
void loss_of_row(int64_t n, const W* x, int64_t target, const Coefficients<W>& b, W* loss,
                 W* log_sum) {
  const W max = max_row(n, x);
  const Packet<W> shift = packet::set(max);
  const double log_total = std::log(sum_row(
      n, -std::numeric_limits<W>::infinity(),
      [&](const Packet<W>& v) { return packet::exp<W>(packet::psub(v, shift)); }, x));
  *log_sum = W(double(max) + log_total);
  double result = b.of_target(target) * (log_total - (double(x[target]) - double(max)));
  if (b.spread > 0) result += b.spread * (b.total * log_total - weighted_sum(n, x, max, b.weights));
  *loss = W(result);
}

// dx = scale (sum of b) p - scale b
template <class W>
void backward_of_row(int64_t n, const W* x, int64_t target, const Coefficients<W>& b, W log_sum,
                     double scale, W* dx) {
  const Packet<W> shift = packet::set(log_sum), factor = packet::set(W(scale * b.sum(target)));
  const auto probability = [&](const Packet<W>& v) {
    return packet::pmul(factor, packet::exp<W>(packet::psub(v, shift)));
  };
  if (b.spread == 0) {
    map_row(n, W(0), dx, probability, x);
  } else {
    const Packet<W> spread = packet::set(W(-scale * b.spread));
    if (b.weights) {
      map_row(
          n, W(0), dx,
          [&](const Packet<W>& v, const Packet<W>& w) {
            return packet::padd(probability(v), packet::pmul(spread, w));
          },
          x, b.weights);
    } else {
      map_row(
          n, W(0), dx, [&](const Packet<W>& v) { return packet::padd(probability(v), spread); }, x);
    }
  }
  dx[target] -= W(scale * b.of_target(target));
}

}  // namespace

void check_targets(Cpu, View target, int64_t classes, int64_t ignore_index) {
  const int64_t* t = target.as<int64_t>();
  for (int64_t row = 0; row < target.numel; ++row) {
    if (t[row] == ignore_index) continue;
    check<IndexError>(t[row] >= 0 && t[row] < classes, "target", t[row], "of row", row,
                      "is outside of [0,", classes, ") and not the ignore_index", ignore_index);
  }
}

void cross_entropy(Cpu, View logits, View target, View weight, MutView losses, MutView log_sums,
                   MutView totals, CrossEntropy options) {
  const RowIndex<2> rows(logits.shape(), {&logits.strides(), &logits.strides()}, 1);
  const int64_t* targets = target.as<int64_t>();
  visit_any_float(logits.dtype, [&]<class T>() {
    using W = Wide<T>;
    const Coefficients<W> b(weight, rows.length, options.smoothing);
    W *loss = losses.as<W>(), *log_sum = log_sums.as<W>();
    for_rows<T, 1>(rows, {logits.as<T>()}, static_cast<T*>(nullptr),
                   [&](int64_t row, const auto& in, auto*) {
                     if (targets[row] == options.ignore_index)
                       loss[row] = log_sum[row] = 0;
                     else
                       loss_of_row(rows.length, in[0], targets[row], b, loss + row, log_sum + row);
                   });
    totals.as<W>()[0] = W(sum_row(
        rows.count, W(0), [](const Packet<W>& v) { return v; }, loss));
    totals.as<W>()[1] = W(parallel_reduce(
        rows.count, 1 << 14, 0.0,
        [&](int64_t begin, int64_t end) {
          double sum = 0;
          for (int64_t row = begin; row < end; ++row)
            if (targets[row] != options.ignore_index) sum += b.weight_of(targets[row]);
          return sum;
        },
        [](double x, double y) { return x + y; }));
  });
}

void cross_entropy_backward(Cpu, View logits, View target, View weight, View log_sums, View scale,
                            MutView dlogits, CrossEntropy options) {
  const RowIndex<2> rows(logits.shape(), {&logits.strides(), &dlogits.strides()}, 1);
  const int64_t* targets = target.as<int64_t>();
  const int64_t scale_step = scale.numel == 1 ? 0 : 1;
  visit_any_float(logits.dtype, [&]<class T>() {
    using W = Wide<T>;
    const Coefficients<W> b(weight, rows.length, options.smoothing);
    const W *log_sum = log_sums.as<W>(), *factor = scale.as<W>();
    for_rows<T, 1>(rows, {logits.as<T>()}, dlogits.as<T>(),
                   [&](int64_t row, const auto& in, auto* out) {
                     if (targets[row] == options.ignore_index)
                       std::fill_n(out, rows.length, W(0));
                     else
                       backward_of_row(rows.length, in[0], targets[row], b, log_sum[row],
                                       double(factor[row * scale_step]), out);
                   });
  });
}

}  // namespace tg::kernels
