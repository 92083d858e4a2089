#include "tapegrad/data/spirals.h"

#include <cmath>
#include <numbers>

#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/core/random.h"

namespace tg::data {

TensorDataset spirals(int64_t count, double noise, uint64_t seed) {
  check<ValueError>(count >= 0, "spirals: count must not be negative, got", count);
  Generator random(seed);
  Tensor points = empty({count, 2}), labels = empty({count}, i64);
  auto* point = points.mutable_data<float>();
  auto* label_of = labels.mutable_data<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    int64_t label = i % 2;
    double along = std::sqrt(random.uniform());  // evenly over the curve's length, nearly
    double angle = 3 * std::numbers::pi * along + std::numbers::pi * double(label);
    point[2 * i] = float(along * std::cos(angle) + noise * random.normal());
    point[2 * i + 1] = float(along * std::sin(angle) + noise * random.normal());
    label_of[i] = label;
  }
  return TensorDataset(points, labels);
}

}  // namespace tg::data
