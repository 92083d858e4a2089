#include "tapegrad/tools/app/bench/measure.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>

#include "tapegrad/core/parallel.h"

namespace tg::app {
namespace {

double now() {
  timespec t{};
  clock_gettime(num_threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

// Seconds of one call, over calls that take about `seconds` together.
double time_calls(const Function<void()>& call, double seconds) {
  int64_t calls = 0;
  double begin = now(), passed = 0;
  for (int64_t more = 1; calls == 0 || passed < seconds;) {  // the clock itself takes time
    for (int64_t i = 0; i < more; ++i) call();
    calls += more;
    passed = now() - begin;
    more = calls;  // as many again, or what is left
    if (passed > 0) more = std::min(more, int64_t(double(calls) * (seconds / passed - 1)) + 1);
  }
  return passed / double(calls);
}

}  // namespace

double Result::quantile(double share) const {
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  const double at = share * double(sorted.size() - 1);
  const size_t below = size_t(at), above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - double(below)) * (sorted[above] - sorted[below]);
}

std::vector<Result> measure(const std::vector<Work>& works, const Effort& effort) {
  std::vector<Result> results;
  std::vector<Function<void()>> calls;
  for (const Work& work : works) {
    const Ready ready = work.make();
    results.push_back({work.name, ready.flops, ready.bytes, {}});
    calls.push_back(ready.call);
    calls.back()();  // memory is touched and caches are filled before the first round
  }
  for (int round = 0; round < effort.rounds; ++round)
    for (size_t i = 0; i < calls.size(); ++i)
      results[i].seconds.push_back(time_calls(calls[i], effort.seconds));
  return results;
}

std::string time_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.3g} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds >= 1e-6) return fmt::format("{:.3g} us", seconds * 1e6);
  return fmt::format("{:.3g} ns", seconds * 1e9);
}

}  // namespace tg::app
