// The folder of one run: outputs/<run>/ with config.yaml, run.json, log.csv and the checkpoints.
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
  // Makes the folder and writes config.yaml and run.json. An older run there is moved aside to
  // <run>.1, <run>.2, ...: nothing is lost.
  void start(const TrainConfig& config, const std::string& data_checksum);
  std::string path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string last() const { return file("last.safetensors"); }
  std::string best() const { return file("best.safetensors"); }
  // Writes log.csv anew with these rows.
  void write_log(const std::vector<EpochRow>& rows) const;

 private:
  std::string path_;
};

}  // namespace tg::app
