// A register of values at a time: eight sums side by side in one register. The odd end of a row is
// loaded into a register whose other places hold what adds nothing: 0 for the sum, the mean for the
// distances from it.
//
// What it gains: eight values for one instruction, in all three passes. The sums wait for
// themselves again, as in the first rung; now each wait is for eight values.
#include <cmath>

#include "tapegrad/kernels/cpu/lab/rungs.h"
#include "tapegrad/kernels/cpu/row_math.h"

namespace tg::kernels::lab {

void vectors(const LayerNormRow& p) {
  Packet<float> sums = packet::set(0.0f), squares = packet::set(0.0f);
  for_packets<float>(
      p.n, [&](int64_t i, auto access) { sums = packet::padd(sums, access.load(p.x + i)); });
  const float mean = packet::sum<float>(sums) / float(p.n);
  const Packet<float> m = packet::set(mean);
  for_packets<float>(p.n, [&](int64_t i, auto access) {
    const Packet<float> distance = packet::psub(access.load(p.x + i, mean), m);
    squares = packet::pmadd(distance, distance, squares);
  });
  const float rstd = float(1 / std::sqrt(packet::sum<float>(squares) / double(p.n) + p.eps));
  const Packet<float> r = packet::set(rstd);
  for_packets<float>(p.n, [&](int64_t i, auto access) {
    Packet<float> y = packet::pmul(packet::psub(access.load(p.x + i), m), r);
    if (p.weight) y = packet::pmul(y, access.load(p.weight + i));
    if (p.bias) y = packet::padd(y, access.load(p.bias + i));
    access.store(p.y + i, y);
  });
  *p.mean = mean;
  *p.rstd = rstd;
}

}  // namespace tg::kernels::lab
