// The exponentials are kept where the result will be, and multiplied by 1 / sum when it is known.
//
// What it gains: half of the calls. A row fits the first-level cache, so keeping it costs next to
// nothing, and one division takes the place of n.
#include <cmath>
#include <limits>

#include "tapegrad/kernels/cpu/lab/rungs.h"

namespace tg::kernels::lab {

void stored(const SoftmaxRow& p) {
  float max = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < p.n; ++i) max = p.x[i] > max ? p.x[i] : max;
  double sum = 0;
  for (int64_t i = 0; i < p.n; ++i) sum += p.y[i] = std::exp(p.x[i] - max);
  const float scale = float(1 / sum);
  for (int64_t i = 0; i < p.n; ++i) p.y[i] *= scale;
}

}  // namespace tg::kernels::lab
