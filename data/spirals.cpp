#include "tapegrad/data/spirals.h"

#include <cmath>
#include <numbers>

#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/core/random.h"

namespace tg::data {

TensorDataset spirals(int64_t count, double noise, uint64_t seed) {
  check<ValueError>(count >= 0, "spirals: count must not be negative, got", count);
  Generator random(seed);
  std::vector<float> points;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < count; ++i) {
    int64_t label = i % 2;
    double along = std::sqrt(random.uniform());  // evenly over the curve's length, nearly
    double angle = 3 * std::numbers::pi * along + std::numbers::pi * double(label);
    points.push_back(float(along * std::cos(angle) + noise * random.normal()));
    points.push_back(float(along * std::sin(angle) + noise * random.normal()));
    labels.push_back(label);
  }
  return TensorDataset(tensor(points, {count, 2}), tensor(labels, {count}));
}

}  // namespace tg::data
