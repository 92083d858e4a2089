#include "tapegrad/autograd/selection.h"

#include <algorithm>

#include "tapegrad/autograd/geometry.h"
#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops/comparison.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/reduction.h"
#include "tapegrad/autograd/ops/views.h"
#include "tapegrad/kernels/copy.h"
#include "tapegrad/kernels/index.h"

namespace tg {
namespace {

// v with the indexed dimensions in front.
Tensor columns_first(const Tensor& v, const Selection& s) {
  Shape shape, strides;
  auto indexed = [&](int d) {
    return std::any_of(s.columns.begin(), s.columns.end(), [d](auto& c) { return c.dim == d; });
  };
  for (const auto& c : s.columns) {
    shape.push_back(v.shape()[c.dim]);
    strides.push_back(v.strides()[c.dim]);
  }
  for (int d = 0; d < v.dim(); ++d) {
    if (indexed(d)) continue;
    shape.push_back(v.shape()[d]);
    strides.push_back(v.strides()[d]);
  }
  return alias(v, shape, strides, v.offset());
}

// A tensor of the result's shape as [count, dimensions that are not indexed...]. May copy.
Tensor as_rows(const Tensor& result, const Selection& s) {
  Shape parts, part_strides, shape, strides, joined;
  for (int i = 0; i < result.dim(); ++i) {
    bool selected = i >= s.at && i < s.at + s.shape.rank();
    (selected ? parts : shape).push_back(result.shape()[i]);
    (selected ? part_strides : strides).push_back(result.strides()[i]);
  }
  if (!view_strides(parts, part_strides, {s.shape.numel()}, &joined)) {
    Tensor copy = empty(result.shape(), result.options());
    on(copy.device(), [&](auto device) { kernels::copy(device, result.read(), copy.write()); });
    return as_rows(copy, s);
  }
  shape.insert(0, s.shape.numel());
  strides.insert(0, joined[0]);
  return alias(result, shape, strides, result.offset());
}

// Calls run(columns) with what the kernels want to know.
template <class F>
void with_columns(const Selection& s, F run) {
  std::vector<Tensor> tensors;
  std::vector<kernels::IndexColumn> columns;
  tensors.reserve(s.columns.size());
  for (const auto& c : s.columns) {
    tensors.push_back(c.indices.get());
    columns.push_back({tensors.back().read(), c.name, c.from_end});
  }
  run(std::span<const kernels::IndexColumn>(columns));
}

}  // namespace

Shape Selection::result_shape(const Shape& v) const {
  Shape result;
  for (int d = 0; d < v.rank(); ++d)
    if (std::none_of(columns.begin(), columns.end(), [d](auto& c) { return c.dim == d; }))
      result.push_back(v[d]);
  for (int i = 0; i < shape.rank(); ++i) result.insert(at + i, shape[i]);
  return result;
}

// y = v[s]    dv = zeros with dy added at s
Tensor take(const Tensor& v, const Selection& s) {
  Op op("index");
  Tensor y = empty(s.result_shape(v.shape()), v.options());
  Tensor source = columns_first(v, s), rows = as_rows(y, s);
  with_columns(s, [&](auto columns) {
    on(y.device(),
       [&](auto device) { kernels::index(device, source.read(), columns, rows.write()); });
  });
  return op.record(y, {v}, [s, shape = v.shape()](const Tensor& dy, Needs) -> Grads {
    return {put_into_zeros(dy, shape, s)};
  });
}

void put(const Tensor& v, const Selection& s, const Tensor& values, bool accumulate) {
  Tensor target = columns_first(v, s);
  Tensor rows = as_rows(expanded(values, s.result_shape(v.shape())), s);
  with_columns(s, [&](auto columns) {
    on(v.device(), [&](auto device) {
      kernels::index_put(device, target.write(), columns, rows.read(), accumulate);
    });
  });
}

Tensor put_into_zeros(const Tensor& dy, const Shape& shape, const Selection& s) {
  if (is_floating(dy.dtype()) && size_of(dy.dtype()) == 2)  // many may meet in one place
    return cast(put_into_zeros(cast(dy, f32), shape, s), dy.dtype());
  Op op("index_backward");
  Tensor y = zeros(shape, dy.options());
  put(y, s, dy, /*accumulate=*/true);
  return op.record(y, {dy}, [s](const Tensor& g, Needs) -> Grads { return {take(g, s)}; });
}

Tensor without(const Tensor& dy, const Selection& s) {
  Op op("index_put_backward");
  Tensor y = empty_like(dy);
  on(y.device(), [&](auto device) { kernels::copy(device, dy.read(), y.write()); });
  put(y, s, zeros({}, y.options()), /*accumulate=*/false);
  return op.record(y, {dy}, [s](const Tensor& g, Needs) -> Grads { return {without(g, s)}; });
}

// Every entry writes its number into its place; it was overwritten if it does not read it back.
Tensor overwritten(const Shape& v, const Selection& s, Device device) {
  Selection places{s.columns, s.shape, 0};
  Shape shape;
  for (size_t k = 0; k < s.columns.size(); ++k) {
    shape.push_back(v[s.columns[k].dim]);
    places.columns[k].dim = int(k);
  }
  Tensor owner = empty(shape, {i64, device});
  Tensor number = reshape(arange(s.shape.numel(), {i64, device}), s.shape);
  put(owner, places, number, /*accumulate=*/false);
  Tensor lost = ne(take(owner, places), number);
  if (!any(lost).item<bool>()) return {};
  Shape broadcast = s.shape;
  for (int d = s.at + int(s.columns.size()); d < v.rank(); ++d) broadcast.push_back(1);
  return reshape(lost, broadcast);
}

}  // namespace tg
