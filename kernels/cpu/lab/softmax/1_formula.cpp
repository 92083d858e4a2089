// The formula as it stands, with the largest value taken off so that no exponential overflows. It
// says e^x in two places, so each exponential is computed twice, by a call that handles one number.
#include <cmath>
#include <limits>

#include "tapegrad/kernels/cpu/lab/rungs.h"

namespace tg::kernels::lab {

void formula(const SoftmaxRow& p) {
  float max = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < p.n; ++i) max = p.x[i] > max ? p.x[i] : max;
  double sum = 0;
  for (int64_t i = 0; i < p.n; ++i) sum += std::exp(p.x[i] - max);
  for (int64_t i = 0; i < p.n; ++i) p.y[i] = float(std::exp(p.x[i] - max) / sum);
}

}  // namespace tg::kernels::lab
