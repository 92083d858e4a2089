#include "app/program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>

#include "app/program_path.h"
#include "catch.h"

namespace tg::test {

Program::Program(const Words& words, const std::function<void()>& prepare) {
  std::string program = program_path(), out = output_ / "out", err = output_ / "err";
  std::vector<char*> arguments{program.data()};
  Words copy = words;
  for (std::string& word : copy) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  // Opened here, so that a user who may not go where it lies can run it.
  int executable = ::open(program.c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(executable >= 0);
  int out_file = ::open(out.c_str(), O_WRONLY | O_CREAT, 0600);
  int err_file = ::open(err.c_str(), O_WRONLY | O_CREAT, 0600);
  process_ = ::fork();
  if (process_ == 0) {
    ::dup2(out_file, STDOUT_FILENO);
    ::dup2(err_file, STDERR_FILENO);
    if (prepare) prepare();
    ::fexecve(executable, arguments.data(), environ);
    ::_exit(127);
  }
  for (int file : {executable, out_file, err_file}) ::close(file);
  REQUIRE(process_ > 0);
}

Program::~Program() {
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

void Program::signal(int number) const { REQUIRE(::kill(process_, number) == 0); }

Finished Program::wait() {
  int status = 0;
  REQUIRE(::waitpid(process_, &status, 0) == process_);
  process_ = -1;
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, TemporaryFolder::read(output_ / "out"), TemporaryFolder::read(output_ / "err")};
}

Finished run(const Words& words, const std::function<void()>& prepare) {
  return Program(words, prepare).wait();
}

void check_refused(const Finished& finished, const std::vector<std::string>& parts) {
  INFO("stdout: " << finished.out << "stderr: " << finished.err);
  CHECK(finished.status == 1);
  CHECK(std::count(finished.err.begin(), finished.err.end(), '\n') == 1);
  CHECK_THAT(finished.err, Catch::StartsWith("tapegrad: ") && Catch::EndsWith("\n"));
  for (const std::string& part : parts) CHECK_THAT(finished.err, Catch::Contains(part));
}

std::string weights(const std::string& checkpoint) {
  Finished info = run({"info", checkpoint});
  REQUIRE(info.status == 0);
  size_t at = info.out.find("sha256 ");
  REQUIRE(at != std::string::npos);
  return info.out.substr(at, info.out.find('\n', at) - at);
}

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

namespace {

std::string big_endian(int v) { return {char(v >> 24), char(v >> 16), char(v >> 8), char(v)}; }

}  // namespace

std::string idx_images(int count, int size) {
  std::string bytes =
      std::string("\0\0\x08\x03", 4) + big_endian(count) + big_endian(size) + big_endian(size);
  for (int i = 0; i < count * size * size; ++i) bytes += char(i * 37 % 251);
  return bytes;
}

std::string idx_labels(int count) {
  std::string bytes = std::string("\0\0\x08\x01", 4) + big_endian(count);
  for (int i = 0; i < count; ++i) bytes += char(i % 10);
  return bytes;
}

void write_idx(const TemporaryFolder& folder, int count, int size) {
  for (const char* part : {"train", "t10k"}) {
    folder.write(std::string(part) + "-images-idx3-ubyte", idx_images(count, size));
    folder.write(std::string(part) + "-labels-idx1-ubyte", idx_labels(count));
  }
}

Words short_run(const TemporaryFolder& folder, const std::string& name) {
  return {"train",
          folder.write("config.yaml", "model:\n  name: mlp\n  hidden: 8\n"),
          "data.folder=" + (folder / ""),
          "data.validation=10",
          "data.batch_size=10",
          "data.workers=0",
          "threads=1",
          "outputs=" + (folder / "outputs"),
          "run=" + name};
}

}  // namespace tg::test
