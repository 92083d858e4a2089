// Starts the built program as a user would, and small data sets for it.
#pragma once
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "temporary_folder.h"

namespace tg::test {

using Words = std::vector<std::string>;

// How the program ended and what it said.
struct Finished {
  int status = -1;  // 128 + the number of a signal that ended it, as in a shell
  std::string out, err;
};

// A started program. Its output goes to files, so it never waits for us to read.
class Program {
 public:
  // `prepare` runs in the new process before the program does, e.g. to limit it.
  explicit Program(const Words& words, const std::function<void()>& prepare = {});
  ~Program();  // killed if it is still running
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void signal(int number) const;
  Finished wait();

 private:
  TemporaryFolder output_;
  pid_t process_ = -1;
};

// Starts the program and waits for its end.
Finished run(const Words& words, const std::function<void()>& prepare = {});

// Fails the test unless the program ended with status 1 and one line on stderr that holds all of
// these parts.
void check_refused(const Finished& finished, const std::vector<std::string>& parts);

// "sha256 ..." of the weights of a checkpoint, as the program's `info` says.
std::string weights(const std::string& checkpoint);
// The same words with more behind them.
Words with(Words words, const Words& more);

// Four IDX files as MNIST has them: `count` images of size x size, labels 0 to 9 in turn.
void write_idx(const TemporaryFolder& folder, int count = 60, int size = 6);
std::string idx_images(int count, int size);
std::string idx_labels(int count);
// A training run on such files that takes a moment: one epoch of five batches.
Words short_run(const TemporaryFolder& folder, const std::string& name = "run");

}  // namespace tg::test
