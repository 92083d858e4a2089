// What the tests that walk the operator table ask of a row, on whatever device.
#pragma once
#include <algorithm>
#include <cmath>

#include "ops/table.h"
#include "tapegrad/core/random.h"

namespace tg::test {

// Why the row does not take part; null if it does.
inline const std::string* opted_out(const Row& row, Part part) {
  for (const OptOut& o : row.opt_outs)
    if (o.part == part) return &o.reason;
  return nullptr;
}

inline bool claims(const Row& row, DType t) {
  return std::find(row.dtypes.begin(), row.dtypes.end(), t) != row.dtypes.end();
}

inline bool differentiable(const Row& row) {
  return claims(row, f64) && !opted_out(row, Part::gradient);
}

// The name of a stored reference: "softmax.0.y0".
inline std::string key(const Row& row, size_t sample, const std::string& rest) {
  return row.name + "." + std::to_string(sample) + "." + rest;
}

// Listed values that no integer dtype holds (NaN, infinities, negative ones in u8) say nothing of
// integers: what they are cast to is not the operator's business.
inline bool says_something(const Sample& sample, DType dtype) {
  if (is_floating(dtype)) return true;
  for (const In& in : sample.in)
    for (double v : in.listed)
      if (!(std::abs(v) < 128) || v != std::floor(v) || (v < 0 && dtype == u8)) return false;
  return true;
}

inline bool is_low(DType t) { return t == f16 || t == bf16; }

// In whose units y may be away from its reference, for inputs of a dtype.
inline DType precision_of(const Tensor& y, DType inputs) {
  if (is_low(inputs) || (y.is_floating() && is_floating(inputs))) return inputs;
  return f32;
}

inline Tensors run(const Sample& sample, const Tensors& x) {
  manual_seed(7);
  return sample.call(x);
}

// The same values in memory laid out otherwise: every second element of a buffer of threes, twice
// as long in the last dimension, and the dimensions in reverse order.
struct Strided {
  Tensor buffer, inner;
  explicit Strided(const Tensor& x) {
    Shape wide = x.shape();
    wide[wide.rank() - 1] = 2 * wide.back() + 1;
    buffer = full(wide, 3, x.options());
    inner = slice(buffer, -1, 1, 2 * x.shape().back() + 1, 2);
    copy_(inner, x);
  }
  // What lies between the elements is as it was.
  bool gaps_intact() const {
    Tensor gaps = slice(buffer, -1, 0, buffer.shape().back(), 2);
    return all(eq(gaps, 3)).item() == 1;
  }
};
inline Tensor strided(const Tensor& x) { return x.dim() == 0 ? x : Strided(x).inner; }
inline Tensor reversed(const Tensor& x) {
  std::vector<int64_t> order;
  for (int64_t d = x.dim() - 1; d >= 0; --d) order.push_back(d);
  if (order.empty()) return x;
  return permute(contiguous(permute(x, order)), order);
}

}  // namespace tg::test
