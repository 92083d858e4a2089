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

}  // namespace tg::test
