#include "tapegrad/tools/app/circumstances.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "tapegrad/core/parallel.h"
#include "tapegrad/tools/app/code_version.h"

namespace tg::app {
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

std::string now_text() {
  std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

}  // namespace

Json circumstances(const std::vector<std::string>& command) {
  std::error_code ignored;
  utsname machine{};
  uname(&machine);
  Json json;
  json["time"] = now_text();
  json["command"] = command;
  json["folder"] = fs::current_path(ignored).string();
  json["code"] = {{"version", TAPEGRAD_VERSION},
                  {"commit", code_commit()},
                  {"compiler", __VERSION__},
                  {"compiled_for", TAPEGRAD_ARCH}};
  json["machine"] = {{"host", machine.nodename},
                     {"system", std::string(machine.sysname) + " " + machine.release},
                     {"architecture", machine.machine},
                     {"cores", std::thread::hardware_concurrency()},
                     {"threads", num_threads()}};
  return json;
}

std::string text_of(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tg::app
