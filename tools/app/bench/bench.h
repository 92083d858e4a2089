// `tapegrad bench`: what this machine can do, and how near the kernels come to it.
#pragma once
#include <string>
#include <vector>

namespace tg::app {

struct BenchArguments {
  std::vector<std::string> words;    // none: roofs and operators; lab [LADDER...]: the kernel lab
  std::vector<std::string> compare;  // instead: two files that --json has written
  std::string only;                  // operators with this in their name
  std::string json;                  // a file for the results
  int threads = 0;                   // 0: all cores, but one for the lab
  double seconds = 0.05;             // of each measurement
  int rounds = 7;
  std::vector<std::string> command;  // all words as they were given, for the file
};
int bench_command(const BenchArguments& arguments);

// Each word is LADDER:RUNG: from here on that rung takes the place of the engine's kernel.
void use_kernels(const std::vector<std::string>& words);

}  // namespace tg::app
