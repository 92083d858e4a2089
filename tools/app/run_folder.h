// The folder of one run: outputs/<run>/ with config.yaml, run.json, log.csv and the checkpoints.
// While a program trains in it, it is locked: a second one gets an error.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tapegrad/tools/app/config.h"

namespace tg::app {

struct EpochRow {
  int64_t epoch = 0;
  double train_loss = 0, train_accuracy = 0, val_loss = 0, val_accuracy = 0, lr = 0;
  double seconds = 0, loader_wait = 0;
};

class RunFolder {
 public:
  explicit RunFolder(const TrainConfig& config);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  // Makes the folder and writes config.yaml and run.json. An older run there is moved aside to
  // <run>.1, <run>.2, ...: nothing is lost.
  void start(const TrainConfig& config, const std::string& data_checksum,
             const std::vector<std::string>& command);
  // Undoes start(): a run that could not begin leaves nothing.
  void take_back();
  // For a run that goes on: FileError if another program trains there, or the folder is missing.
  void lock();
  // Adds this command to run.json.
  void note_resume(const std::vector<std::string>& command) const;
  std::string path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string last() const { return file("last.safetensors"); }
  std::string best() const { return file("best.safetensors"); }
  // Writes log.csv anew with these rows.
  void write_log(const std::vector<EpochRow>& rows) const;

 private:
  // config.yaml and run.json
  void describe(const TrainConfig& config, const std::string& data_checksum,
                const std::vector<std::string>& command) const;
  void unlock();
  std::string path_;
  int lock_ = -1;  // of the folder; the system takes it back when the program ends
};

}  // namespace tg::app
