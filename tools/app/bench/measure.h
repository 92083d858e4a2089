// Timing of pieces of work that take turns, and what came out of it.
#pragma once
#include <string>
#include <vector>

#include "tapegrad/core/function.h"

namespace tg::app {

// Something to be timed, ready to be called again and again. What it counts is of one call; 0: not
// worth counting.
struct Ready {
  Function<void()> call;
  double flops = 0;  // multiplications and additions, counted apart
  double bytes = 0;  // that must be read and written, if each value travels once
};
struct Work {
  std::string name;
  Function<Ready()> make;  // its inputs are made when its turn has come
};

struct Result {
  std::string name;
  double flops = 0, bytes = 0;
  std::vector<double> seconds;  // of one call, one value for each round

  // The value below which this share of the rounds lies: 0.5 for the median.
  double quantile(double share) const;
  double median() const { return quantile(0.5); }
};

struct Effort {
  int rounds = 7;
  double seconds = 0.05;  // for each work in each round, or one call if that takes longer
};

// In each round every work runs once, one after the other, so that a slow moment of the machine
// meets all of them. With one thread the time is the processor's for this thread, which does not
// count what others do on the same core; with several it is what a clock on the wall shows.
std::vector<Result> measure(const std::vector<Work>& works, const Effort& effort);

// "1.23 ms"
std::string time_text(double seconds);

}  // namespace tg::app
