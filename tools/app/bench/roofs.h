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

// What keeps a piece of work from being faster.
struct Bound {
  std::string by;    // "arithmetic", or the level that its bytes fit
  std::string roof;  // the name of the result that shows the most of it
};
// `roofs`: what roof_works() gave.
Bound bound(const std::vector<Result>& roofs, double flops, double bytes);
// Of the time that the work took, the share that it must take at the rate of its roof: round by
// round, so the two are to be measured together; the median.
double share_of_roof(const Result& work, const Result& roof);

}  // namespace tg::app
