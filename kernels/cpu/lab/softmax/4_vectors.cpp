// The same, a register of values at a time. The odd end of a row is loaded into a register whose
// other places hold -infinity, which changes neither the largest value nor the sum, and goes
// through the same instructions.
//
// What it gains: eight values for the price of one, which only works because e^x has no call and no
// branch any more. What is left: the polynomial is one long chain, each step of which waits for the
// step before.
#include <limits>

#include "tapegrad/kernels/cpu/lab/rungs.h"
#include "tapegrad/kernels/cpu/row_math.h"

namespace tg::kernels::lab {
namespace {

using Floats = Packet<float>;

// The same polynomial for a register of values.
Floats exp_of_negative(Floats x) {
  using namespace Eigen::internal;
  const auto c = [](float value) { return packet::set(value); };
  const Floats n = pfloor(pmadd(x, c(1.44269504f), c(0.5f)));
  Floats r = pmadd(n, c(-0x1.62e4p-1f), x);
  r = pmadd(n, c(-0x1.7f7d1cp-20f), r);
  Floats y = c(1.0f / 720);
  for (float next : {1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f}) y = pmadd(y, r, c(next));
  y = pldexp(y, n);  // y 2^n
  y = pselect(pcmp_lt(x, c(-87.33f)), c(0), y);
  return pselect(pcmp_eq(x, x), y, x);  // NaN stays NaN
}

}  // namespace

void vectors(const SoftmaxRow& p) {
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  Floats largest = packet::set(kLowest), sums = packet::set(0.0f);
  for_packets<float>(p.n, [&](int64_t i, auto access) {
    largest = packet::pmax(largest, access.load(p.x + i, kLowest));
  });
  const Floats max = packet::set(packet::max<float>(largest));
  for_packets<float>(p.n, [&](int64_t i, auto access) {
    const Floats e = exp_of_negative(packet::psub(access.load(p.x + i, kLowest), max));
    access.store(p.y + i, e);
    sums = packet::padd(sums, e);
  });
  const Floats scale = packet::set(1 / packet::sum<float>(sums));
  for_packets<float>(p.n, [&](int64_t i, auto access) {
    access.store(p.y + i, packet::pmul(access.load(p.y + i), scale));
  });
}

}  // namespace tg::kernels::lab
