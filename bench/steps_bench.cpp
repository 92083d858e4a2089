// Whole training steps. With --serve it is the partner of compare.py: it reads "STEP COUNT SECONDS"
// lines (COUNT 0: as many as fit into SECONDS), runs that many steps and answers with the wall and
// the CPU seconds of one step and the peak memory.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <iostream>
#include <map>

#include "steps.h"
#include "tapegrad/core/memory.h"
#include "tapegrad/core/parallel.h"

namespace {

using tg::bench::Step;
using Clock = std::chrono::steady_clock;

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

int serve() {
  std::map<std::string, tg::Function<double()>> made;
  std::string name;
  long count = 0;
  double seconds = 0;
  while (std::cin >> name >> count >> seconds) {
    if (!made.count(name)) {
      for (const Step& s : tg::bench::steps())
        if (s.name == name) made[name] = s.make();
      if (!made.count(name)) {
        std::fprintf(stderr, "no step '%s'\n", name.c_str());
        return 2;
      }
      for (int i = 0; i < 3; ++i) made[name]();
    }
    auto& step = made[name];
    tg::reset_peak_memory();
    long done = 0;
    double cpu = cpu_seconds();
    auto start = Clock::now();
    double wall = 0;
    do {
      step();
      ++done;
      wall = std::chrono::duration<double>(Clock::now() - start).count();
    } while (count > 0 ? done < count : wall < seconds);
    std::printf("%.9f %.9f %lld\n", wall / double(done), (cpu_seconds() - cpu) / double(done),
                static_cast<long long>(tg::memory_stats().peak));
    std::fflush(stdout);
  }
  return 0;
}

void run_step(benchmark::State& state, const Step& step) {
  auto run = step.make();
  for (int i = 0; i < 3; ++i) run();
  for (auto _ : state) run();
  state.counters["FLOP/s"] = benchmark::Counter(
      step.flops, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--serve") == 0) {
    tg::set_num_threads(std::atoi(argv[2]));
    return serve();
  }
  benchmark::Initialize(&argc, argv);
  for (const Step& step : tg::bench::steps())
    for (int threads : {1, tg::num_threads()}) {
      std::string name = "step/" + step.name + "/threads:" + std::to_string(threads);
      benchmark::RegisterBenchmark(name.c_str(),
                                   [&step, threads](benchmark::State& state) {
                                     tg::set_num_threads(threads);
                                     run_step(state, step);
                                   })
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
    }
  benchmark::RunSpecifiedBenchmarks();
}
