#include "tapegrad/tools/app/bench/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "tapegrad/core/error.h"
#include "tapegrad/core/io/atomic_file.h"
#include "tapegrad/core/parallel.h"
#include "tapegrad/tools/app/bench/ladders.h"
#include "tapegrad/tools/app/bench/operators.h"
#include "tapegrad/tools/app/bench/report.h"
#include "tapegrad/tools/app/bench/roofs.h"

namespace tg::app {
namespace {

namespace lab = kernels::lab;

std::string rate_text(double per_call, double seconds, const char* unit) {
  return per_call > 0 ? fmt::format("{:.3g} {}", per_call / seconds / 1e9, unit) : "";
}

// How far the quarter of the rounds on either side of the median lies from it.
std::string spread_text(const Result& r) {
  const double m = r.median();
  return fmt::format("{:+.0f}% {:+.0f}%", 100 * (r.quantile(0.25) / m - 1),
                     100 * (r.quantile(0.75) / m - 1));
}

std::vector<Result> measure_roofs(const Effort& effort, std::vector<Result>& results) {
  fmt::print("{:<36} {:>14} {:>13}\n", "roof", "", "spread");
  std::vector<Result> roofs = measure(roof_works(), effort);
  for (const Result& r : roofs) {
    const std::string rate = r.flops > 0 ? rate_text(r.flops, r.median(), "GFLOP/s")
                                         : rate_text(r.bytes, r.median(), "GB/s");
    fmt::print("{:<36} {:>14} {:>13}\n", r.name.substr(5), rate, spread_text(r));
  }
  results.insert(results.end(), roofs.begin(), roofs.end());
  return roofs;
}

void measure_operators(const std::vector<Work>& works, const std::vector<Result>& roofs,
                       const Effort& effort, std::vector<Result>& results) {
  fmt::print("\n{:<36} {:>9} {:>13} {:>10} {:>15}  of roof\n", "operator", "time", "spread", "",
             "");
  const std::vector<Work> all_roofs = roof_works();
  for (const Work& work : works) {
    // It takes turns with its roof, which may not be where it was a minute ago.
    const Ready ready = work.make();
    const Bound by = bound(roofs, ready.flops, ready.bytes);
    const Work& roof = *std::find_if(all_roofs.begin(), all_roofs.end(),
                                     [&](const Work& w) { return w.name == by.roof; });
    const std::vector<Result> both = measure({{work.name, [&] { return ready; }}, roof}, effort);
    const Result& r = both[0];
    fmt::print("{:<36} {:>9} {:>13} {:>10} {:>15}  {:3.0f}% {}\n", r.name, time_text(r.median()),
               spread_text(r), rate_text(r.bytes, r.median(), "GB/s"),
               rate_text(r.flops, r.median(), "GFLOP/s"), 100 * share_of_roof(r, both[1]), by.by);
    std::fflush(stdout);
    results.push_back(r);
  }
}

// Round by round, how many times as fast as the rung before; of that, the median.
double times_as_fast(const Result& rung, const Result& before) {
  Result ratios;
  for (size_t i = 0; i < rung.seconds.size(); ++i)
    ratios.seconds.push_back(before.seconds[i] / rung.seconds[i]);
  return ratios.median();
}

void measure_ladder(const lab::Ladder& ladder, const Effort& effort, std::vector<Result>& results) {
  const std::vector<Result> rungs = measure(rung_works(ladder), effort);
  fmt::print("{:<18} {:>9} {:>13} {:>14} {:>7}\n", ladder.name, "time", "spread", "", "times");
  for (size_t i = 0; i < rungs.size(); ++i) {
    const Result& r = rungs[i];
    const std::string rate = r.flops > 0 ? rate_text(r.flops, r.median(), "GFLOP/s")
                                         : rate_text(r.bytes, r.median(), "GB/s");
    const std::string times =
        i > 0 ? fmt::format("{:.2f}", times_as_fast(r, rungs[i - 1])) : std::string();
    fmt::print("  {:<16} {:>9} {:>13} {:>14} {:>7}  {}\n", ladder.rungs[i].name,
               time_text(r.median()), spread_text(r), rate, times, ladder.rungs[i].idea);
  }
  fmt::print("\n");
  std::fflush(stdout);
  results.insert(results.end(), rungs.begin(), rungs.end());
}

void bench_lab(const std::vector<std::string>& names, const Effort& effort,
               std::vector<Result>& results) {
  std::vector<lab::Ladder> chosen;
  for (const std::string& name : names) chosen.push_back(lab::ladder(name));
  for (const lab::Ladder& ladder : names.empty() ? lab::ladders() : chosen)
    measure_ladder(ladder, effort, results);
}

int compare_command(const std::vector<std::string>& files) {
  fmt::print("{}", comparison(load_results(files[0]), load_results(files[1])));
  return 0;
}

}  // namespace

void use_kernels(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    const size_t colon = word.find(':');
    check<ValueError>(colon != std::string::npos,
                      "--kernel takes LADDER:RUNG, such as matmul:row_order, not '" + word + "'");
    lab::use(word.substr(0, colon), word.substr(colon + 1));
  }
}

int bench_command(const BenchArguments& arguments) {
  if (!arguments.compare.empty()) return compare_command(arguments.compare);
  const bool of_lab = !arguments.words.empty();
  if (of_lab && arguments.words[0] != "lab")
    fail<ValueError>(
        "bench measures the operators, or with 'bench lab' the kernel lab; it has no '" +
        arguments.words[0] + "'");
  check<ValueError>(!of_lab || arguments.only.empty(), "--only chooses operators, not rungs");
  check<ValueError>(arguments.threads >= 0, "--threads must not be negative, got",
                    arguments.threads);
  check<ValueError>(arguments.rounds > 0, "--rounds must be positive, got", arguments.rounds);
  check<ValueError>(arguments.seconds > 0 && arguments.seconds <= 3600,
                    "--seconds must be above 0 and at most 3600, got", arguments.seconds);
  const std::vector<Work> works = operator_works(arguments.only);
  check<ValueError>(!works.empty(), "no operator has '" + arguments.only + "' in its name");
  if (arguments.threads > 0)
    set_num_threads(arguments.threads);
  else if (of_lab)
    set_num_threads(1);
  std::optional<io::AtomicFile> file;  // before the work, so that a wrong path costs no time
  if (!arguments.json.empty()) file.emplace(arguments.json);
  fmt::print("{} thread{}, {} rounds, medians; spread: the middle half of the rounds\n\n",
             num_threads(), num_threads() == 1 ? "" : "s", arguments.rounds);
  const Effort effort{arguments.rounds, arguments.seconds};
  std::vector<Result> results;
  if (of_lab)
    bench_lab({arguments.words.begin() + 1, arguments.words.end()}, effort, results);
  else
    measure_operators(works, measure_roofs(effort, results), effort, results);
  if (file) {
    file->write(results_text(results, arguments.command));
    file->commit();
  }
  return 0;
}

}  // namespace tg::app
