#include <cstring>

#include "catch.h"
#include "tapegrad/core/io/safetensors.h"
#include "temporary_folder.h"

using namespace tg;
using namespace std::string_literals;

TEST_CASE("A safetensors header that cannot be is refused before memory is taken", "[IOF-01]") {
  TemporaryFolder folder;
  reset_peak_memory();
  int64_t before = memory_stats().live;
  auto refused = [&](const std::string& bytes) {
    try {
      load_safetensors(folder.write("x.safetensors", bytes));
    } catch (const FileError& e) {
      return std::string(e.what());
    }
    return "accepted"s;
  };
  CHECK(refused("\x40\x9D\xDF\x07\0\0\0\0{}"s).find("132095296") != std::string::npos);
  CHECK(refused(std::string(8, '\xff') + "{}").find("18446744073709551615") != std::string::npos);
  CHECK(refused("\xf8\xff\xff\xff\xff\xff\xff\xff{}").find("not a safetensors") !=
        std::string::npos);  // + 8 wraps to 0
  CHECK(refused(std::string(8, '\0')).find("not a safetensors") != std::string::npos);
  CHECK(refused("1234567").find("only 7 bytes") != std::string::npos);
  CHECK(refused("\x10\0\0\0\0\0\0\0{}"s).find("the file only 10") != std::string::npos);
  CHECK(refused("<!DOCTYPE html><html><body>404</body></html>").find("not a safetensors") !=
        std::string::npos);
  CHECK(refused("\x05\0\0\0\0\0\0\0{}   "s) == "accepted");
  CHECK(memory_stats().peak == before);
}

TEST_CASE("The writer refuses a header that its reader would refuse", "[IOF-01]") {
  TemporaryFolder folder;
  std::string path = folder.write("x.safetensors", "what was there");
  std::string long_text(size_t(kMaxSafetensorsHeader), 'x');
  CHECK_THROWS_AS(save_safetensors(path, {}, {{"k", long_text}}), ValueError);
  CHECK(TemporaryFolder::read(path) == "what was there");
  CHECK(folder.files() == 1);
}
