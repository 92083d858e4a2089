// The part of elementwise kernels that is the same for all of them: a small loop over contiguous
// memory is led over operands of any strides and dtypes, by several threads.
#pragma once
#include <span>

#include "tapegrad/kernels/dispatch.h"

namespace tg::kernels {

inline constexpr int kMaxInputs = 4;

// out[i] = formula(in[0][i], ...), i < n, on contiguous memory. An input with step 0 is one value
// for all i, of which kRepeat copies stand at in[k], so that it is read as the others are.
using Run = void (*)(const void* formula, const void* const* in, const int64_t* step, void* out,
                     int64_t n);
inline constexpr int64_t kRepeat = 32;
struct RunKernel {
  Run run;
  const void* formula;
  DType in[kMaxInputs];  // what `run` reads and writes; other dtypes are converted
  DType out;
};
void run_elementwise(const RunKernel& kernel, std::span<const View> in, MutView y);

// The type in which elements of a float dtype are computed: f64 in double, all others in float.
template <class F>
void visit_compute_float(DType t, F&& fn) {
  if (t == DType::f64) return fn.template operator()<double>();
  check<DTypeError>(is_floating(t), "works on floats, got", t);
  fn.template operator()<float>();
}
// ... and of an integer or bool dtype: i64 in itself, the narrower ones in int32_t.
template <class F>
void visit_compute_integer(DType t, F&& fn) {
  if (t == DType::i64) return fn.template operator()<int64_t>();
  fn.template operator()<int32_t>();
}

}  // namespace tg::kernels
