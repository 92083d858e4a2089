#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "catch.h"
#include "tapegrad/core/io/atomic_file.h"
#include "tapegrad/core/io/safetensors.h"
#include "temporary_folder.h"

using namespace tg;

namespace {

Tensor filled(int64_t n, float value) {
  Tensor x = empty({n});
  std::fill_n(x.mutable_data<float>(), n, value);
  return x;
}

// The value that fills the file, or an error that it is not whole.
float value_of(const std::string& path) {
  NamedTensors t = load_safetensors(path);
  const float* x = t.at(0).second.data<float>();
  int64_t n = t[0].second.numel();
  REQUIRE(std::count(x, x + n, x[0]) == n);
  return x[0];
}

struct WritesFail {
  explicit WritesFail(int64_t after) { io::fail_writes_after(after); }
  ~WritesFail() { io::fail_writes_after(-1); }
};

}  // namespace

TEST_CASE("A save that fails leaves the old file whole and nothing beside it", "[IOF-10]") {
  TemporaryFolder folder;
  std::string path = folder / "checkpoint.safetensors";
  save_safetensors(path, {{"x", filled(100000, 1)}});
  for (int64_t after : {0, 1, 100, 200000, 400000}) {
    std::string message;
    {
      WritesFail failing(after);
      try {
        save_safetensors(path, {{"x", filled(100000, 2)}});
      } catch (const FileError& e) {
        message = e.what();
      }
    }
    INFO("after " << after << " bytes: " << message);
    CHECK(message.find(path) != std::string::npos);
    CHECK(message.find("No space left") != std::string::npos);
    CHECK(value_of(path) == 1);
    CHECK(folder.files() == 1);
  }
  save_safetensors(path, {{"x", filled(10, 3)}});
  CHECK(value_of(path) == 3);
}

TEST_CASE("The system's own refusal to write more is reported", "[IOF-10]") {
  TemporaryFolder folder;
  std::string path = folder / "x";
  io::write_file(path, "old");
  pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{50000, 50000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    int status = 1;
    try {
      io::write_file(path, std::string(200000, 'x'));
    } catch (const FileError& e) {
      status = std::string(e.what()).find("File too large") != std::string::npos ? 0 : 2;
    }
    ::_exit(status);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(TemporaryFolder::read(path) == "old");
  CHECK(folder.files() == 1);
}

TEST_CASE("A process killed while it saves leaves a whole file", "[IOF-10]") {
  TemporaryFolder folder;
  std::string path = folder / "checkpoint.safetensors";
  save_safetensors(path, {{"x", filled(300000, 0)}});
  for (int round = 0; round < 12; ++round) {
    pid_t child = ::fork();
    if (child == 0) {
      for (int i = 1;; ++i) save_safetensors(path, {{"x", filled(300000, float(i))}});
    }
    ::usleep(useconds_t(3000 + 1700 * round));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    CHECK(value_of(path) >= 0);
    CHECK(folder.files() <= 2);  // the file and what the killed process was writing
  }
  save_safetensors(path, {{"x", filled(10, 7)}});
  CHECK(value_of(path) == 7);
  CHECK(folder.files() == 1);
}

TEST_CASE("Only the path's own leftovers are removed, and only dead ones", "[IOF-10]") {
  TemporaryFolder folder;
  folder.write("a.unfinished-1-1", "of a dead process");
  folder.write("ab.unfinished-1-1", "of another file");
  folder.write("a.txt", "no leftover");
  io::AtomicFile living(folder / "a");
  living.write("half");
  io::write_file(folder / "a", "other");
  CHECK(TemporaryFolder::read(folder / "a") == "other");
  CHECK(folder.files() == 4);  // a, a's living temporary, ab's, a.txt
  living.write(" and half");
  living.commit();
  CHECK(TemporaryFolder::read(folder / "a") == "half and half");
  CHECK(folder.files() == 3);
}

TEST_CASE("A file that is not committed vanishes, and odd targets are refused", "[IOF-10]") {
  TemporaryFolder folder;
  {
    io::AtomicFile file(folder / "a");
    file.write("abc");
  }
  CHECK(folder.files() == 0);
  CHECK_THROWS_WITH(
      io::write_file(folder / "no/such/file", "x"),
      "cannot write " + (folder / "no/such/file") + ": there is no folder " + (folder / "no/such"));
  folder.write("plain", "x");
  CHECK_THROWS_WITH(io::write_file(folder / "plain/file", "x"),
                    Catch::EndsWith("there is no folder " + (folder / "plain")));
  CHECK_THROWS_AS(io::write_file(folder / "", "x"), FileError);
  CHECK_THROWS_AS(io::write_file("/dev/full", "x"), FileError);
  // A link keeps pointing to its file, whose permissions stay.
  std::filesystem::create_directory(folder / "real");
  folder.write("real/x", "old");
  std::filesystem::permissions(folder / "real/x", std::filesystem::perms(0640));
  std::filesystem::create_symlink(folder / "real/x", folder / "link");
  io::write_file(folder / "link", "new");
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(TemporaryFolder::read(folder / "real/x") == "new");
  CHECK(std::filesystem::status(folder / "real/x").permissions() == std::filesystem::perms(0640));
}
