// The results of `tapegrad bench` as a JSON file, and two such files side by side.
#pragma once
#include "tapegrad/tools/app/bench/measure.h"

namespace tg::app {

struct Report {
  std::string origin;  // in words: when, which commit, how many threads
  std::vector<Result> results;
};
// The file's text. `command`: the words of the command line.
std::string results_text(const std::vector<Result>& results,
                         const std::vector<std::string>& command);
// FileError, in one line with the path, for a file that is missing, cut or something else.
Report load_results(const std::string& path);

// How many times as fast the second run was: by the medians, and at least and at most if of each
// run the quickest and the slowest quarter of the rounds are left out. Where 1 lies between these
// two, the runs cannot be told apart.
struct Change {
  double times = 1, least = 1, most = 1;
};
Change change(const Result& before, const Result& after);
// A line for each result that both have; then the names that only one has. ValueError if they have
// nothing in common.
std::string comparison(const Report& before, const Report& after);

}  // namespace tg::app
