// A row is read three times (largest, exponentials and their sum, scaling) and fits the first-level
// cache unless it is very long, so the memory is passed over once.
#include "tapegrad/kernels/softmax.h"

#include <cmath>
#include <limits>

#include "tapegrad/kernels/cpu/lab/rungs.h"
#include "tapegrad/kernels/cpu/row_math.h"
#include "tapegrad/kernels/cpu/rows.h"

namespace tg::kernels {
namespace {

// The sum of exp(x - max); the exponentials go to y unless it is null.
template <class W>
double exp_row(int64_t n, const W* x, W max, W* y) {
  const Packet<W> shift = packet::set(max);
  return map_sum_row(
      n, -std::numeric_limits<W>::infinity(), y,
      [&](const Packet<W>& v) { return packet::exp<W>(packet::psub(v, shift)); }, x);
}

template <class W>
void softmax_row(int64_t n, const W* x, W* y) {
  if constexpr (std::is_same_v<W, float>) {
    const auto rung = lab::chosen_rung<lab::SoftmaxRow>();
    if (rung && n > 0) [[unlikely]]
      return rung({n, x, y});
  }
  const Packet<W> scale = packet::set(W(1 / exp_row(n, x, max_row(n, x), y)));
  map_row(
      n, W(0), y, [&](const Packet<W>& v) { return packet::pmul(v, scale); }, y);
}

template <class W>
void log_softmax_row(int64_t n, const W* x, W* y) {
  const W max = max_row(n, x);
  const Packet<W> shift = packet::set(max);
  const Packet<W> log_sum = packet::set(W(std::log(exp_row<W>(n, x, max, nullptr))));
  map_row(
      n, W(0), y, [&](const Packet<W>& v) { return packet::psub(packet::psub(v, shift), log_sum); },
      x);
}

template <class W>
void softmax_backward_row(int64_t n, const W* y, const W* dy, W* dx) {
  const Packet<W> dot = packet::set(W(sum_row(
      n, W(0), [](const Packet<W>& a, const Packet<W>& b) { return packet::pmul(a, b); }, y, dy)));
  map_row(
      n, W(0), dx,
      [&](const Packet<W>& p, const Packet<W>& g) { return packet::pmul(p, packet::psub(g, dot)); },
      y, dy);
}

template <class W>
void log_softmax_backward_row(int64_t n, const W* y, const W* dy, W* dx) {
  const Packet<W> total = packet::set(W(sum_row(
      n, W(0), [](const Packet<W>& g) { return g; }, dy)));
  map_row(
      n, W(0), dx,
      [&](const Packet<W>& v, const Packet<W>& g) {
        return packet::psub(g, packet::pmul(packet::exp<W>(v), total));
      },
      y, dy);
}

}  // namespace

void softmax(Cpu, View x, MutView y, int64_t dim) {
  const RowIndex<2> rows(x.shape(), {&x.strides(), &y.strides()}, dim);
  visit_any_float(x.dtype, [&]<class T>() {
    for_rows<T, 1>(rows, {x.as<T>()}, y.as<T>(), [&](int64_t, const auto& in, auto* out) {
      softmax_row(rows.length, in[0], out);
    });
  });
}

void log_softmax(Cpu, View x, MutView y, int64_t dim) {
  const RowIndex<2> rows(x.shape(), {&x.strides(), &y.strides()}, dim);
  visit_any_float(x.dtype, [&]<class T>() {
    for_rows<T, 1>(rows, {x.as<T>()}, y.as<T>(), [&](int64_t, const auto& in, auto* out) {
      log_softmax_row(rows.length, in[0], out);
    });
  });
}

void softmax_backward(Cpu, View y, View dy, MutView dx, int64_t dim) {
  const RowIndex<3> rows(y.shape(), {&y.strides(), &dy.strides(), &dx.strides()}, dim);
  visit_any_float(y.dtype, [&]<class T>() {
    for_rows<T, 2>(rows, {y.as<T>(), dy.as<T>()}, dx.as<T>(),
                   [&](int64_t, const auto& in, auto* out) {
                     softmax_backward_row(rows.length, in[0], in[1], out);
                   });
  });
}

void log_softmax_backward(Cpu, View y, View dy, MutView dx, int64_t dim) {
  const RowIndex<3> rows(y.shape(), {&y.strides(), &dy.strides(), &dx.strides()}, dim);
  visit_any_float(y.dtype, [&]<class T>() {
    for_rows<T, 2>(rows, {y.as<T>(), dy.as<T>()}, dx.as<T>(),
                   [&](int64_t, const auto& in, auto* out) {
                     log_softmax_backward_row(rows.length, in[0], in[1], out);
                   });
  });
}

}  // namespace tg::kernels
