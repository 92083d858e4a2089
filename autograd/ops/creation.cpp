#include "tapegrad/autograd/ops/creation.h"

#include <cmath>
#include <limits>

#include "tapegrad/autograd/geometry.h"
#include "tapegrad/autograd/inplace.h"
#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/scalars.h"
#include "tapegrad/kernels/copy.h"
#include "tapegrad/kernels/range.h"

namespace tg {
namespace {

void copy_values(const Tensor& from, const Tensor& to) {
  on(to.device(), [&](auto device) { kernels::copy(device, from.read(), to.write()); });
}

Tensor filled(Tensor y, Scalar value) {
  check_fits(value, y.dtype());
  on(y.device(), [&](auto device) { kernels::fill(device, y.write(), value); });
  return y;
}

}  // namespace

void check_fits(Scalar value, DType dtype) {
  if (!is_integral(dtype)) return;
  int bits = int(size_of(dtype)) * 8;
  bool is_signed = dtype != DType::u8;
  double low = is_signed ? -std::ldexp(1.0, bits - 1) : 0.0;
  double above = std::ldexp(1.0, is_signed ? bits - 1 : bits);
  bool ok = value.is_floating() || bits < 64
                ? value.to_double() >= low && std::trunc(value.to_double()) < above
                : true;
  if (ok) return;
  if (value.is_floating()) fail<ValueError>("the value", value.to_double(), "does not fit", dtype);
  fail<ValueError>("the value", value.to_int64(), "does not fit", dtype);
}

Tensor zeros(const Shape& shape, TensorOptions options) { return full(shape, 0, options); }
Tensor ones(const Shape& shape, TensorOptions options) { return full(shape, 1, options); }
Tensor full(const Shape& shape, Scalar value, TensorOptions options) {
  Scope scope("full");
  return filled(empty(shape, options), value);
}
Tensor zeros_like(const Tensor& x) { return full_like(x, 0); }
Tensor ones_like(const Tensor& x) { return full_like(x, 1); }
Tensor full_like(const Tensor& x, Scalar value) {
  Scope scope("full_like");
  check(x.defined(), "the tensor is undefined");
  return filled(empty_like(x), value);
}
Tensor scalar_tensor(Scalar value, TensorOptions options) { return full({}, value, options); }

Tensor arange(Scalar start, Scalar end, Scalar step, TensorOptions options) {
  Scope scope("arange");
  double a = start.to_double(), b = end.to_double(), s = step.to_double();
  check<ValueError>(std::isfinite(a) && std::isfinite(b) && std::isfinite(s),
                    "start, end and step must be finite, got", a, b, s);
  check<ValueError>(s != 0, "step is 0");
  check<ValueError>(a == b || (b > a) == (s > 0), "step", s, "leads away from the end: start", a,
                    "end", b);
  int64_t count = 0;
  if (start.is_floating() || end.is_floating() || step.is_floating()) {
    double exact = std::ceil((b - a) / s);
    check<ShapeError>(exact < 9e18, "too many elements:", exact);
    count = int64_t(exact);
  } else {
    // Differences of int64 fit in 64 unsigned bits.
    int64_t i = start.to_int64(), e = end.to_int64(), d = step.to_int64();
    uint64_t span = d > 0 ? uint64_t(e) - uint64_t(i) : uint64_t(i) - uint64_t(e);
    uint64_t stride = d > 0 ? uint64_t(d) : 0 - uint64_t(d);
    uint64_t n = span / stride + (span % stride != 0);
    check<ShapeError>(n <= uint64_t(std::numeric_limits<int64_t>::max()), "too many elements");
    count = int64_t(n);
  }
  check<DTypeError>(options.dtype != DType::boolean || count <= 2, "bool holds 0 and 1 only");
  if (count > 0) {
    check_fits(start, options.dtype);
    check_fits(a + double(count - 1) * s, options.dtype == DType::i64 ? DType::f64 : options.dtype);
  }
  Tensor y = empty({count}, options);
  on(y.device(), [&](auto device) { kernels::arange(device, y.write(), start, step); });
  return y;
}
Tensor arange(int64_t end, TensorOptions options) { return arange(0, end, 1, options); }

Tensor linspace(double start, double end, int64_t steps, TensorOptions options) {
  Scope scope("linspace");
  check<ValueError>(steps >= 0, "steps must be 0 or more, got", steps);
  check_fits(start, options.dtype);
  check_fits(end, options.dtype);
  Tensor y = empty({steps}, options);
  on(y.device(), [&](auto device) { kernels::linspace(device, y.write(), start, end); });
  return y;
}

Tensor eye(int64_t n, TensorOptions options) {
  Scope scope("eye");
  Tensor y = zeros({n, n}, options);
  filled(alias(y, {n}, {n + 1}, 0), 1);
  return y;
}

template <class T>
Tensor tensor(const std::vector<T>& values, const Shape& shape, TensorOptions options) {
  Scope scope("tensor");
  check<ShapeError>(int64_t(values.size()) == shape.numel(), "shape", shape, "holds", shape.numel(),
                    "values, got", values.size());
  Tensor y = empty(shape, options);
  if constexpr (std::is_same_v<T, bool>) {  // std::vector<bool> packs bits: no array of bool
    std::vector<uint8_t> bytes(values.begin(), values.end());
    copy_values(from_blob(bytes.data(), shape, DType::boolean), y);
  } else {
    copy_values(from_blob(const_cast<T*>(values.data()), shape, dtype_of<T>()), y);
  }
  return y;
}
template Tensor tensor(const std::vector<float>&, const Shape&, TensorOptions);
template Tensor tensor(const std::vector<double>&, const Shape&, TensorOptions);
template Tensor tensor(const std::vector<Half>&, const Shape&, TensorOptions);
template Tensor tensor(const std::vector<BFloat16>&, const Shape&, TensorOptions);
template Tensor tensor(const std::vector<int8_t>&, const Shape&, TensorOptions);
template Tensor tensor(const std::vector<uint8_t>&, const Shape&, TensorOptions);
template Tensor tensor(const std::vector<int16_t>&, const Shape&, TensorOptions);
template Tensor tensor(const std::vector<int32_t>&, const Shape&, TensorOptions);
template Tensor tensor(const std::vector<long>&, const Shape&, TensorOptions);
template Tensor tensor(const std::vector<long long>&, const Shape&, TensorOptions);
template Tensor tensor(const std::vector<bool>&, const Shape&, TensorOptions);

Tensor tensor(std::initializer_list<Scalar> values, TensorOptions options) {
  const Shape shape = {int64_t(values.size())};
  std::vector<double> real;
  std::vector<int64_t> whole;  // keeps what a double would round
  for (Scalar v : values) {
    real.push_back(v.to_double());
    if (!v.is_floating()) whole.push_back(v.to_int64());
  }
  if (whole.size() == real.size()) return tensor(whole, shape, options);
  return tensor(real, shape, options);
}
Tensor tensor(std::initializer_list<std::initializer_list<double>> rows, TensorOptions options) {
  std::vector<double> values;
  size_t width = rows.size() ? rows.begin()->size() : 0;
  for (const auto& row : rows) {
    check<ShapeError>(row.size() == width, "tensor: rows of different lengths:", width, row.size());
    values.insert(values.end(), row.begin(), row.end());
  }
  return tensor(values, {int64_t(rows.size()), int64_t(width)}, options);
}

// y = x in another dtype    dx = dy in x's dtype
Tensor cast(const Tensor& input, DType dtype) {
  Op op("cast");
  Tensor x = op.in(input);
  if (x.dtype() == dtype) return x;
  Tensor y = empty_like(x, dtype);
  copy_values(x, y);
  if (!is_floating(dtype)) return y;
  return op.record(
      y, {x}, [from = x.dtype()](const Tensor& dy, Needs) -> Grads { return {cast(dy, from)}; });
}

namespace {
Tensor copied(const Op& op, const Tensor& x, Tensor y) {
  copy_values(x, y);
  return op.record(std::move(y), {x}, [](const Tensor& dy, Needs) -> Grads { return {dy}; });
}
}  // namespace

Tensor clone(const Tensor& input) {
  Op op("clone");
  Tensor x = op.in(input);
  return copied(op, x, empty_like(x));
}
Tensor contiguous(const Tensor& input) {
  if (input.defined() && input.is_contiguous()) return input;
  Op op("contiguous");
  Tensor x = op.in(input);
  return copied(op, x, empty(x.shape(), x.options()));
}
Tensor channels_last(const Tensor& input) {
  Op op("channels_last");
  Tensor x = op.in(input);
  check<ShapeError>(x.dim() == 4, "needs [N,C,H,W], got", x);
  if (x.is_channels_last()) return x;
  return copied(op, x, empty_strided(x.shape(), channels_last_strides(x.shape()), x.options()));
}

// x = source    dx = 0    dsource = dy
const Tensor& copy_(const Tensor& x, const Tensor& input) {
  Op op("copy_");
  op.in(x);
  Tensor source = op.in(input);
  op.prepare_inplace(x);
  if (x.same(source)) return x;
  Tensor from = expanded(source, x.shape());
  if (partly_overlap(x, from)) {  // shifted or transposed onto itself: every old value counts
    Tensor old = empty_like(from);
    copy_values(from, old);
    from = old;
  }
  copy_values(from, x);
  DType dtype = source.dtype();
  return op.record_inplace(x, {x, source}, [dtype](const Tensor& dy, Needs needs) -> Grads {
    return {Tensor(), needs[1] ? cast(dy, dtype) : Tensor()};
  });
}

const Tensor& fill_(const Tensor& x, Scalar value) {
  Op op("fill_");
  op.in(x);
  op.prepare_inplace(x);
  filled(x, value);
  return op.record_inplace(x, {x}, [](const Tensor&, Needs) -> Grads { return {Tensor()}; });
}
const Tensor& zero_(const Tensor& x) { return fill_(x, 0); }

}  // namespace tg
