// Every reader of files against random damage: what comes is a value or an error, never worse. The
// sanitizers' build makes the most of it.
#include "damage.h"
#include "catch.h"
#include "tapegrad/data/idx.h"
#include "tapegrad/data/image.h"
#include "temporary_folder.h"
#include "test_folder.h"

using namespace tg;
using namespace tg::data;

namespace {

// How many of the damaged files were refused.
template <class Read>
int refused(const std::string& whole, int tries, Read&& read) {
  test::Damage damage;
  int count = 0;
  for (int i = 0; i < tries; ++i) {
    std::string bad = damage(whole);
    try {
      read(bad);
    } catch (const Error&) {
      ++count;
    }
  }
  return count;
}

}  // namespace

TEST_CASE("damaged IDX files are read or refused", "[data][idx]") {
  TemporaryFolder folder;
  std::string plain = std::string("\0\0\x08\3\0\0\0\2\0\0\0\3\0\0\0\4", 16);
  for (int i = 0; i < 24; ++i) plain += char(i);
  auto read = [&](const std::string& bytes) { read_idx(folder.write("x", bytes)); };
  read(plain);
  CHECK(refused(plain, 3000, read) > 1000);
  // The same, packed by gzip.
  const std::string packed(
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x63\x60\xe0\x60\x66\x60"
      "\x60\x60\x02\x62\x10\xcd\xc2\xc0\xc8\xc4\xcc\xc2\xca\xc6\xce\xc1"
      "\xc9\xc5\xcd\xc3\xcb\xc7\x2f\x20\x28\x24\x2c\x22\x2a\x26\x0e\x00"
      "\x80\x94\xe8\x16\x28\x00\x00\x00",
      56);
  read(packed);
  CHECK(refused(packed, 3000, read) > 1000);
}

TEST_CASE("damaged pictures are read or refused", "[data][image]") {
  for (const char* name : {"rgb.png", "palette.png", "grey16.png", "exif_II_6.jpg"}) {
    INFO(name);
    std::string whole = TemporaryFolder::read(test::test_folder() + "/data/files/" + name);
    REQUIRE(!whole.empty());
    auto read = [&](const std::string& bytes) { decode_image(bytes, name); };
    CHECK(refused(whole, 1000, read) > 100);
  }
}
