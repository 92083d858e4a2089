// Two spirals that wind around each other: the classic set that no straight line can part.
#pragma once
#include "tapegrad/data/dataset.h"

namespace tg::data {

// `count` points f32 [2], labels 0 and 1 in turn, 1.5 windings, with normal noise on both
// coordinates. The same seed gives the same points.
TensorDataset spirals(int64_t count, double noise = 0.02, uint64_t seed = 0);

}  // namespace tg::data
