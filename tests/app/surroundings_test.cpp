// The program where its surroundings fail it: closed streams, limits of the system, folders that
// must not be entered, runs of one name that begin at once.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>

#include "app/program.h"
#include "catch.h"

using namespace tg::test;
namespace fs = std::filesystem;

TEST_CASE("program: a run that cannot begin leaves nothing", "[program]") {
  TemporaryFolder folder;
  write_idx(folder);
  for (rlim_t most : {1000, 3000}) {  // room for no config.yaml, and for no checkpoint
    check_refused(run(short_run(folder),
                      [most] {
                        rlimit limit{most, most};
                        ::setrlimit(RLIMIT_FSIZE, &limit);
                        ::signal(SIGXFSZ, SIG_DFL);
                      }),
                  {folder / "outputs/run/", "File too large"});
    CHECK_FALSE(fs::exists(folder / "outputs/run"));
  }
  REQUIRE(run(short_run(folder)).status == 0);
  CHECK_FALSE(fs::exists(folder / "outputs/run.1"));
}

TEST_CASE("program: closed and full streams", "[program]") {
  TemporaryFolder folder;
  write_idx(folder);
  auto closed = [](int stream) { return [stream] { ::close(stream); }; };
  Finished f = run(short_run(folder), closed(STDOUT_FILENO));
  CHECK(f.status == 1);
  CHECK_THAT(f.err, Catch::Contains("standard output"));
  CHECK(run(short_run(folder), closed(STDERR_FILENO)).status == 0);
  f = run(short_run(folder), [] {
    for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(stream);
  });
  CHECK(f.status == 1);
  // Nothing that was printed went into a file that took the stream's number.
  for (const char* name : {"run", "run.1", "run.2"}) {
    std::string at = folder / (std::string("outputs/") + name);
    CHECK(weights(at + "/last.safetensors") == weights(folder / "outputs/run/last.safetensors"));
    std::string log = TemporaryFolder::read(at + "/log.csv");
    CHECK(std::count(log.begin(), log.end(), '\n') == 2);
  }
  auto full = [](int stream) {
    return [stream] { ::dup2(::open("/dev/full", O_WRONLY), stream); };
  };
  for (const Words& words : {Words{"info"}, Words{"--help"}}) {
    f = run(words, full(STDOUT_FILENO));
    CHECK(f.status == 1);
    CHECK_THAT(f.err, Catch::Contains("standard output"));
  }
  CHECK(run({"info", folder / "none"}, full(STDERR_FILENO)).status == 1);
}

TEST_CASE("program: the folder of a run under other names", "[program]") {
  TemporaryFolder folder;
  write_idx(folder);
  std::string at = folder / "outputs/run";
  REQUIRE(run(short_run(folder)).status == 0);
  auto inside = [&] { (void)!::chdir(at.c_str()); };
  for (const char* name : {".", "./", "../run", "../run/.", "../../outputs/run//"}) {
    INFO(name);
    Finished f = run({"train", "--resume", name}, inside);
    CHECK(f.err.empty());
    CHECK(f.status == 0);
  }
  check_refused(run({"train", "--resume", at + "/last.safetensors"}),
                {at + "/last.safetensors", "takes the folder of a run"});
  check_refused(run({"train", "--resume", folder / ""}), {"no such checkpoint"});
  check_refused(run({"info", ""}), {"the name of the checkpoint is empty"});
  check_refused(run({"eval", ""}), {"the name of a file to read is empty"});
  check_refused(run({"predict", at + "/best.safetensors", "--samples", "-1"}), {"--samples", "-1"});
}

TEST_CASE("program: folders that must not be entered", "[program]") {
  TemporaryFolder folder;
  write_idx(folder);
  fs::permissions(folder / "", fs::perms(0755));
  for (const char* name : {"closed/train/cat", "closed/test/cat", "out"})
    fs::create_directories(folder / name);
  fs::permissions(folder / "out", fs::perms(0777));
  auto as_user = [] {
    if (::getuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(126);
  };
  Words words = with(short_run(folder), {"outputs=" + (folder / "out")});
  Words pictures = with(words, {"data.name=image_folder", "data.folder=" + (folder / "closed")});
  auto refused = [&](const std::string& closed, const Words& command) {
    fs::permissions(folder / closed, fs::perms(0));
    check_refused(run(command, as_user), {folder / closed, "Permission denied"});
    fs::permissions(folder / closed, fs::perms(0755));
  };
  refused("closed", with(words, {"data.folder=" + (folder / "closed")}));
  refused("closed", pictures);
  refused("closed/train", pictures);
  refused("closed/train/cat", pictures);
  refused("closed", {"train", "--resume", folder / "closed"});
  refused("closed", {"info", folder / "closed/x"});
  refused("config.yaml", words);
  fs::create_symlink("circle.png", folder / "closed/train/cat/circle.png");
  check_refused(run(pictures, as_user), {"circle.png", "symbolic links"});
  CHECK(fs::is_empty(folder / "out"));
}

TEST_CASE("program: of runs of one name that begin at once, one trains", "[program]") {
  TemporaryFolder folder;
  write_idx(folder);
  const Words words = short_run(folder);
  std::vector<std::unique_ptr<Program>> all;
  for (int i = 0; i < 6; ++i) all.push_back(std::make_unique<Program>(words));
  int trained = 0;
  for (auto& program : all) {
    Finished f = program->wait();
    trained += f.status == 0;
    if (f.status != 0) check_refused(f, {folder / "outputs/run", "another program is"});
  }
  CHECK(trained >= 1);
  std::string right = weights(folder / "outputs/run/last.safetensors");
  int found = 0;
  for (const auto& entry : fs::directory_iterator(folder / "outputs")) {
    ++found;
    CHECK(weights((entry.path() / "last.safetensors").string()) == right);
  }
  CHECK(found == trained);
}
