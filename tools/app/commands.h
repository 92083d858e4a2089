// What the program can be asked for. Each returns the exit status; errors are exceptions.
#pragma once
#include <string>
#include <vector>

namespace tg::app {

struct TrainArguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string resume;                // folder of a run
  std::vector<std::string> command;  // all words as they were given, for run.json
};
int train_command(const TrainArguments& arguments);
// Loss and accuracy of a checkpoint on the test set. Of the settings, threads, data.workers and
// data.folder may be given.
int eval_command(const std::string& checkpoint, const std::vector<std::string>& overrides);
// Class and confidence of picture files, or of some test images.
int predict_command(const std::string& checkpoint, const std::vector<std::string>& files,
                    int samples);
// Version, devices, threads; or of a checkpoint: where it stands, its config, the hash of its
// weights.
int info_command(const std::string& checkpoint);
// The whole program: picks the command that the words of the command line name.
int run_program(int argc, char** argv);

}  // namespace tg::app
