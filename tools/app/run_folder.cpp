#include "tapegrad/tools/app/run_folder.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "tapegrad/core/error.h"
#include "tapegrad/core/io/atomic_file.h"
#include "tapegrad/core/parallel.h"

namespace tg::app {
namespace fs = std::filesystem;

namespace {

void move_aside(const std::string& path) {
  for (int n = 1;; ++n) {
    std::string other = path + "." + std::to_string(n);
    if (fs::exists(other)) continue;
    fs::rename(path, other);
    fmt::print("moved the older run to {}\n", other);
    return;
  }
}

std::string now_text() {
  std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

}  // namespace

RunFolder::RunFolder(const TrainConfig& config)
    : path_((fs::path(config.outputs) / config.run).string()) {}

void RunFolder::start(const TrainConfig& config, const std::string& data_checksum) {
  std::error_code error;
  if (fs::exists(path_)) move_aside(path_);
  fs::create_directories(path_, error);
  check<FileError>(!error, path_, ": cannot be made:", error.message());
  io::write_file(file("config.yaml"), to_yaml(config));
  utsname machine{};
  uname(&machine);
  nlohmann::ordered_json run;
  run["program"] = "tapegrad";
  run["version"] = TAPEGRAD_VERSION;
  run["started"] = now_text();
  run["seed"] = config.seed;
  run["data_sha256"] = data_checksum;
  run["machine"] = {{"host", machine.nodename},
                    {"system", std::string(machine.sysname) + " " + machine.release},
                    {"architecture", machine.machine},
                    {"cores", std::thread::hardware_concurrency()},
                    {"threads", num_threads()}};
  io::write_file(file("run.json"), run.dump(2) + "\n");
}

void RunFolder::write_log(const std::vector<EpochRow>& rows) const {
  std::string text =
      "epoch,train_loss,train_accuracy,val_loss,val_accuracy,lr,seconds,loader_wait\n";
  for (const EpochRow& r : rows)
    text += fmt::format("{},{},{},{},{},{},{:.3f},{:.3f}\n", r.epoch, to_text(r.train_loss),
                        to_text(r.train_accuracy), to_text(r.val_loss), to_text(r.val_accuracy),
                        to_text(r.lr), r.seconds, r.loader_wait);
  io::write_file(file("log.csv"), text);
}

}  // namespace tg::app
