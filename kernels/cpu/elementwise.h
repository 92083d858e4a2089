// Elementwise kernels from a formula. The formula is written once, on packets:
//
//   kernels::map(Cpu{}, [](auto a, auto b) { return a * sigmoid(b); }, y.write(), a.read(),
//   b.read());
//
// y = formula(inputs...), element by element. The formula is compiled twice, for f32 and for f64;
// f16 and bf16 are converted to f32 and back in pieces that stay in the first-level cache. Inputs
// broadcast to y's shape; any strides; y may be one of the inputs. The words it may use are in
// kernels/scalar_math.h.
//
// How: a template makes a small loop over contiguous memory (a run). Everything else (collapsing
// dimensions, strides, broadcasting, conversion, threads) is one ordinary function that calls it,
// run_elementwise; so a new formula adds little code to the library.
#pragma once
#include <array>
#include <utility>

#include "tapegrad/kernels/cpu/packet.h"
#include "tapegrad/kernels/cpu/run_kernel.h"
#include "tapegrad/kernels/integer_lane.h"

namespace tg::kernels {

namespace detail {

template <class S, class F, size_t... kInput>
void float_run(const void* formula, const void* const* in, const int64_t* step, void* out,
               int64_t n, std::index_sequence<kInput...>) {
  const F& f = *static_cast<const F*>(formula);
  constexpr int64_t w = Packet<S>::kWidth;
  static_assert(w <= kRepeat);
  const S* x[] = {static_cast<const S*>(in[kInput])...};
  const int64_t stride[] = {w * step[kInput]...};
  S* y = static_cast<S*>(out);
  int64_t i = 0;
  for (; i + w <= n; i += w) {
    f(Packet<S>::load(x[kInput])...).store(y + i);
    ((x[kInput] += stride[kInput]), ...);
  }
  if (i < n) f(Packet<S>::load(x[kInput], n - i)...).store(y + i, n - i);
}

// In blocks of a fixed size, which the compiler turns into vector code.
template <class T, class F, size_t... kInput>
void integer_run(const void* formula, const void* const* in, const int64_t* step, void* out,
                 int64_t n, std::index_sequence<kInput...>) {
  using Lane = IntegerLane<T>;
  constexpr int64_t kBlock = 16;
  static_assert(kBlock <= kRepeat);
  const F& f = *static_cast<const F*>(formula);
  const Lane* x[] = {static_cast<const Lane*>(in[kInput])...};
  Lane* y = static_cast<Lane*>(out);
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    Lane block[kBlock];
    for (int64_t k = 0; k < kBlock; ++k) block[k] = f(x[kInput][k]...);
    std::memcpy(y + i, block, sizeof block);
    ((x[kInput] += kBlock * step[kInput]), ...);
  }
  for (int64_t k = 0; i + k < n; ++k) y[i + k] = f(x[kInput][k]...);
}

}  // namespace detail

// The kernel of a formula for values of type S: float, double, int32_t or int64_t.
template <class S, int kInputs, class F>
RunKernel make_run(const F& formula) {
  RunKernel k;
  k.formula = &formula;
  for (DType& t : k.in) t = dtype_of<S>();
  k.out = dtype_of<S>();
  k.run = [](const void* f, const void* const* in, const int64_t* step, void* out, int64_t n) {
    if constexpr (std::is_floating_point_v<S>)
      detail::float_run<S, F>(f, in, step, out, n, std::make_index_sequence<kInputs>());
    else
      detail::integer_run<S, F>(f, in, step, out, n, std::make_index_sequence<kInputs>());
  };
  return k;
}

template <class F, class... Views>
void map(Cpu, const F& formula, MutView y, const Views&... x) {
  const std::array<View, sizeof...(Views)> in = {View(x)...};
  visit_compute_float(y.dtype, [&]<class S>() {
    run_elementwise(make_run<S, int(sizeof...(Views))>(formula), in, y);
  });
}

}  // namespace tg::kernels
