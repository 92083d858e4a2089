#include "ops/table.h"

namespace tg::test {
namespace {

// Shared with tools/make_references.py: change both or none.
int64_t pattern(int64_t i, int64_t k) { return (73 * i + 101 * k) % 251; }

double element(const In& in, int64_t i, int k, DType dtype) {
  int64_t v = pattern(i, k);
  bool real =
      in.domain == Domain::normal || in.domain == Domain::positive || in.domain == Domain::unit;
  if (real && !is_floating(dtype))
    return double(dtype == boolean ? v % 2 : dtype == u8 ? v : v % 7);
  switch (in.domain) {
    case Domain::normal:
      return v == 125 ? 0.5 : double(v - 125) / 64;
    case Domain::positive:
      return double(v + 1) / 64;
    case Domain::unit:
      return double(v % 125 + 1) / 128;
    case Domain::integer:
      return double(in.low + v % (in.high - in.low));
    case Domain::boolean:
      return double(v % 2);
    case Domain::values:
      return in.listed[size_t(i)];
  }
  return 0;
}

}  // namespace

Tensor make_input(const In& in, int k, DType dtype) {
  std::vector<double> v(size_t(in.shape.numel()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = element(in, int64_t(i), k, dtype);
  DType own = in.domain == Domain::integer ? i64 : in.domain == Domain::boolean ? boolean : dtype;
  return cast(tensor(v, in.shape, TensorOptions(f64)), own);
}

std::string reference_kind(DType dtype) {
  return is_floating(dtype) ? "" : dtype == u8 ? "u8." : dtype == boolean ? "bool." : "i64.";
}

Tensors make_inputs(const Sample& sample, DType dtype, bool requires_grad) {
  Tensors x;
  for (size_t k = 0; k < sample.in.size(); ++k) {
    x.push_back(make_input(sample.in[k], int(k), dtype));
    if (requires_grad && sample.in[k].grad && x.back().is_floating()) x.back().requires_grad_();
  }
  return x;
}

Tensor make_gradient(const Tensor& y, int k) {
  return make_input(normal(y.shape()), 50 + k, y.dtype());
}

}  // namespace tg::test
