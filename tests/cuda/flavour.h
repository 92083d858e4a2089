// What tests on device cuda share. In the emulated flavour they run in every order of threads.
#pragma once
#include "catch.h"
#include "tapegrad/autograd/ops.h"
#include "tapegrad/core/cuda/cuda.h"
#ifdef TAPEGRAD_EMULATED
#include "tapegrad/kernels/simt/settings.h"
#endif

namespace tg::test {

inline constexpr Device kGpu{Device::cuda, 0};

// Calls check() as often as the flavour has orders of threads, and asks for a clean report.
template <class F>
void in_every_order(F check) {
#ifdef TAPEGRAD_EMULATED
  simt::SettingsGuard guard;
  simt::take_report();
  for (simt::Order order : {simt::Order::forward, simt::Order::reverse, simt::Order::shuffled}) {
    simt::settings().order = order;
    simt::settings().lazy_streams = order != simt::Order::reverse;
    INFO("order " << int(order));
    check();
    cuda::synchronize(kGpu);
    CHECK(simt::take_report() == "");
  }
#else
  check();
#endif
}

// The same elements in memory laid out otherwise: dimensions in reverse order, and every second
// element of a longer last dimension.
inline Tensor reversed(const Tensor& x) {
  std::vector<int64_t> order;
  for (int64_t d = x.dim() - 1; d >= 0; --d) order.push_back(d);
  return order.size() < 2 ? x : permute(contiguous(permute(x, order)), order);
}
inline Tensor spread(const Tensor& x) {
  if (x.dim() == 0) return x;
  Shape wide = x.shape();
  wide[wide.rank() - 1] = 2 * wide.back() + 1;
  Tensor inner = slice(zeros(wide, x.options()), -1, 1, 2 * x.shape().back() + 1, 2);
  copy_(inner, x);
  return inner;
}

}  // namespace tg::test
