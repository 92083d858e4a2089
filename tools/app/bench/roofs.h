// What this machine can do at most, measured: no kernel is faster than its roof.
#pragma once
#include "tapegrad/tools/app/bench/measure.h"

namespace tg::app {

// A place for data: a level of the caches, or the memory behind them.
struct Level {
  std::string name;
  double bytes = 0;  // that fit it, for all threads together; infinite for the memory
};
// From the nearest to the farthest, as the system describes this machine.
std::vector<Level> memory_levels();

// Works that do nothing but multiply and add f32 in registers ("roof fma"), and that read or copy
// what lies in each level ("roof L2 read"); from memory also a copy that passes the caches by
// ("roof memory copy past caches"). Each runs on all threads.
std::vector<Work> roof_works();

struct Roofs {
  double flops = 0;  // per second
  std::vector<Level> levels;
  std::vector<double> bandwidth;  // of each level, bytes per second: the best of its works

  explicit Roofs(const std::vector<Result>& results);
  // The shortest time that such work could take, and what keeps it from being shorter.
  struct Bound {
    double seconds = 0;
    std::string by;
  };
  Bound bound(double flops, double bytes) const;
};

}  // namespace tg::app
