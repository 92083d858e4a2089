// Comparisons, logic and choices: results that are bool or bits, so plain loops in blocks that the
// compiler turns into vector code.
#include <cstring>
#include <functional>

#include "tapegrad/kernels/binary.h"
#include "tapegrad/kernels/cpu/run_kernel.h"
#include "tapegrad/kernels/cpu/scalar_view.h"

namespace tg::kernels {

namespace {

constexpr int64_t kBlock = kRepeat;

// y[i] = f(a[i], b[i])
template <class In, class Out, class F>
void pair_run(const void*, const void* const* in, const int64_t* step, void* out, int64_t n) {
  const In* a = static_cast<const In*>(in[0]);
  const In* b = static_cast<const In*>(in[1]);
  Out* y = static_cast<Out*>(out);
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    Out block[kBlock];
    for (int64_t k = 0; k < kBlock; ++k) block[k] = F()(a[k], b[k]);
    std::memcpy(y + i, block, sizeof block);
    a += kBlock * step[0];
    b += kBlock * step[1];
  }
  for (int64_t k = 0; i + k < n; ++k) y[i + k] = F()(a[k], b[k]);
}

template <class S>
RunKernel compare_kernel(Compare how) {
  constexpr Run runs[] = {
      pair_run<S, bool, std::equal_to<S>>, pair_run<S, bool, std::not_equal_to<S>>,
      pair_run<S, bool, std::less<S>>,     pair_run<S, bool, std::less_equal<S>>,
      pair_run<S, bool, std::greater<S>>,  pair_run<S, bool, std::greater_equal<S>>};
  return {runs[int(how)], nullptr, {dtype_of<S>(), dtype_of<S>()}, DType::boolean};
}

struct And {
  bool operator()(bool a, bool b) const { return a & b; }
};
struct Or {
  bool operator()(bool a, bool b) const { return a | b; }
};
struct Xor {
  bool operator()(bool a, bool b) const { return a ^ b; }
};

template <class Bits>
void choose_run(const void*, const void* const* in, const int64_t* step, void* out, int64_t n) {
  const unsigned char* c = static_cast<const unsigned char*>(in[0]);
  const Bits* a = static_cast<const Bits*>(in[1]);
  const Bits* b = static_cast<const Bits*>(in[2]);
  Bits* y = static_cast<Bits*>(out);
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    Bits block[kBlock];
    for (int64_t k = 0; k < kBlock; ++k) block[k] = c[k] ? a[k] : b[k];
    std::memcpy(y + i, block, sizeof block);
    c += kBlock * step[0];
    a += kBlock * step[1];
    b += kBlock * step[2];
  }
  for (int64_t k = 0; i + k < n; ++k) y[i + k] = c[k] ? a[k] : b[k];
}

}  // namespace

void compare(Cpu, Compare how, View a, View b, MutView y) {
  const View in[] = {a, b};
  auto run = [&]<class S>() { run_elementwise(compare_kernel<S>(how), in, y); };
  if (is_floating(a.dtype))
    visit_compute_float(a.dtype, run);
  else
    visit_compute_integer(a.dtype, run);
}

void compare(Cpu, Compare how, View a, Scalar b, MutView y) {
  ScalarView number(b);
  compare(Cpu{}, how, a, number.view(), y);
}

void logical(Cpu, Logical how, View a, View b, MutView y) {
  const View in[] = {a, b};
  constexpr Run runs[] = {pair_run<bool, bool, And>, pair_run<bool, bool, Or>,
                          pair_run<bool, bool, Xor>};
  constexpr DType t = DType::boolean;
  run_elementwise({runs[int(how)], nullptr, {t, t}, t}, in, y);
}

void where(Cpu, View condition, View a, View b, MutView y) {
  const View in[] = {condition, a, b};
  visit_bytes(y.dtype, [&]<class Bits>() {
    run_elementwise({choose_run<Bits>, nullptr, {DType::boolean, y.dtype, y.dtype}, y.dtype}, in,
                    y);
  });
}

}  // namespace tg::kernels
