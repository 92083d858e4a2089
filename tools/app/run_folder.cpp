#include "tapegrad/tools/app/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tapegrad/core/error.h"
#include "tapegrad/core/io/atomic_file.h"
#include "tapegrad/core/io/file_reader.h"
#include "tapegrad/tools/app/circumstances.h"

namespace tg::app {
namespace fs = std::filesystem;

namespace {

using Json = nlohmann::ordered_json;

void move_aside(const std::string& path) {
  for (int n = 1;; ++n) {
    std::string other = path + "." + std::to_string(n);
    std::error_code error;
    if (fs::exists(other, error)) continue;
    fs::rename(path, other, error);
    check<FileError>(!error, path, ": the older run cannot be moved to", other + ":",
                     error.message());
    fmt::print("moved the older run to {}\n", other);
    return;
  }
}

Json config_json(const TrainConfig& config) {
  Json json;
  for_each_key(config, [&](const std::string& name, const auto& field, const char*) {
    size_t dot = name.find('.');
    if (dot == std::string::npos)
      json[name] = field;
    else
      json[name.substr(0, dot)][name.substr(dot + 1)] = field;
  });
  return json;
}

}  // namespace

RunFolder::RunFolder(const TrainConfig& config)
    : path_((fs::path(config.outputs) / config.run).string()) {}

RunFolder::~RunFolder() { unlock(); }

void RunFolder::lock() {
  lock_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  check<FileError>(lock_ >= 0 || errno != ENOENT, path_,
                   ": another program is moving the run of this name; give run= another");
  check<FileError>(lock_ >= 0, path_, ": cannot be used as the folder of a run:",
                   std::generic_category().message(errno));
  // A file system without locks has no protection against a second program, but works.
  bool busy = ::flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  check<FileError>(!busy, path_,
                   ": another program is training there; wait for it, or give run= another name");
  // One that started at the same moment may have moved aside what was just opened.
  struct stat locked {
  }, named{};
  check<FileError>(::fstat(lock_, &locked) == 0 && ::stat(path_.c_str(), &named) == 0 &&
                       locked.st_dev == named.st_dev && locked.st_ino == named.st_ino,
                   path_, ": another program is starting a run of this name; give run= another");
  for (const char* name :
       {"config.yaml", "run.json", "log.csv", "last.safetensors", "best.safetensors"})
    io::remove_leftovers(file(name));
}

void RunFolder::unlock() {
  if (lock_ >= 0) ::close(lock_);
  lock_ = -1;
}

void RunFolder::start(const TrainConfig& config, const std::string& data_checksum,
                      const std::vector<std::string>& command) {
  std::error_code error;
  if (fs::exists(path_, error)) {
    lock();
    // An empty folder may be one that another program has made for itself a moment ago: it is not
    // moved, so that it finds this lock there.
    if (!fs::is_empty(path_, error)) {
      move_aside(path_);
      unlock();
    }
  }
  if (lock_ < 0) {
    fs::create_directories(path_, error);
    check<FileError>(!error, path_, ": cannot be made:", error.message());
    lock();
  }
  try {
    describe(config, data_checksum, command);
  } catch (...) {
    take_back();
    throw;
  }
}

void RunFolder::take_back() {
  std::error_code ignored;
  for (const char* name : {"config.yaml", "run.json"}) fs::remove(file(name), ignored);
  fs::remove(path_, ignored);
  unlock();
}

void RunFolder::describe(const TrainConfig& config, const std::string& data_checksum,
                         const std::vector<std::string>& command) const {
  io::write_file(file("config.yaml"), to_yaml(config));
  Json run = circumstances(command);
  run["seed"] = config.seed;
  run["data_sha256"] = data_checksum;
  run["config"] = config_json(config);
  io::write_file(file("run.json"), text_of(run));
}

void RunFolder::note_resume(const std::vector<std::string>& command) const {
  std::error_code ignored;
  if (!fs::exists(file("run.json"), ignored)) return;
  Json run = Json::parse(io::read_file(file("run.json")), nullptr, false);
  if (!run.is_object() || (run.contains("resumed") && !run["resumed"].is_array())) return;
  run["resumed"].push_back(circumstances(command));
  io::write_file(file("run.json"), text_of(run));
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
