// What a run leaves behind, and that nothing is lost: Ctrl-C, a full disk, a name used twice.
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

#include "app/program.h"
#include "catch.h"
#include "tapegrad/optim/adam.h"
#include "tapegrad/optim/checkpoint.h"
#include "tapegrad/tools/app/trainer.h"

using namespace tg;
using namespace tg::test;
namespace fs = std::filesystem;

namespace {

// A run of some 600 steps on points, for a second or so, that saves often; the same weights in
// every folder and for any number of workers.
Words long_run(const TemporaryFolder& folder, const std::string& name) {
  return {"train",
          folder.write("points.yaml",
                       "data: {name: spirals, train_samples: 6000, validation: 100, "
                       "batch_size: 30}\n"
                       "model: {name: mlp, hidden: '128,128', dropout: true}\n"),
          "epochs=3",
          "checkpoint_every=7",
          "threads=1",
          "outputs=" + (folder / "outputs"),
          "run=" + name};
}

// Returns when the run has done some steps.
void wait_for_step(const std::string& last, int64_t step) {
  auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  while (std::chrono::steady_clock::now() < deadline) {
    if (fs::exists(last) && optim::read_progress(last).step >= step) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  FAIL("no step " << step << " in " << last);
}

// Files that are left of a save that did not come to its end.
int unfinished(const std::string& folder) {
  int n = 0;
  for (const auto& entry : fs::directory_iterator(folder))
    n += entry.path().filename().string().find("unfinished") != std::string::npos;
  return n;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    all.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

// Ctrl-C after the first steps of a run; returns what it said.
Finished interrupted_run(const Words& words, const std::string& last, int number) {
  Program program(words);
  wait_for_step(last, 7);
  program.signal(number);
  return program.wait();
}

// Turns the checkpoint behind the first epoch into the one that stands before its validation.
void rewind_epoch(const std::string& path, int64_t batches, const std::string& setting) {
  app::Trained trained = app::read_trained(path);
  app::Model model =
      app::make_model(trained.config, trained.image_shape, int64_t(trained.classes.size()));
  optim::AdamW optimizer(model.module());
  optim::ConstantLR schedule(optimizer);
  Generator random;
  optim::CheckpointParts parts{&model.module(), &optimizer, &schedule, {{"default", &random}}};
  optim::Progress at = optim::load_checkpoint(path, parts);
  at.epoch = 0;
  at.position = batches;
  at.user["epochs"] = "0";
  at.user["best_accuracy"] = "-1";
  app::apply_overrides(trained.config, {setting});
  at.user["config"] = app::to_yaml(trained.config);
  optim::save_checkpoint(path, parts, at);
}

// A small file system of its own, where the system lets us have one.
struct SmallDisk {
  std::string path;
  bool there;
  SmallDisk(const std::string& at, const char* size) : path(at) {
    fs::create_directories(at);
    there = ::mount("tmpfs", at.c_str(), "tmpfs", 0, size) == 0;
  }
  ~SmallDisk() {
    if (there) ::umount2(path.c_str(), MNT_DETACH);
  }
};

}  // namespace

TEST_CASE("program: what a run writes", "[program]") {
  TemporaryFolder folder;
  write_idx(folder);
  Finished f = run(with(short_run(folder), {"epochs=3", "seed=7"}));
  REQUIRE(f.status == 0);
  CHECK(f.err.empty());
  CHECK_THAT(f.out, Catch::Contains("test: loss ") && Catch::Contains("of 60 images"));
  std::string at = folder / "outputs/run/";
  std::string config = TemporaryFolder::read(at + "config.yaml");
  CHECK_THAT(config, Catch::Contains("epochs: 3") && Catch::Contains("seed: 7") &&
                         Catch::Contains("hidden: 8"));
  std::string json = TemporaryFolder::read(at + "run.json");
  for (const char* part : {"\"command\": [", "\"seed=7\"", "\"version\": \"0.1.0\"", "\"commit\": ",
                           "\"compiler\": ", "\"host\": ", "\"cores\": ", "\"time\": \"20",
                           "\"data_sha256\": \"", "\"hidden\": \"8\"", "\"batch_size\": 10"})
    CHECK_THAT(json, Catch::Contains(part));
  std::vector<std::string> log = lines(TemporaryFolder::read(at + "log.csv"));
  REQUIRE(log.size() == 4);
  CHECK(log[0] == "epoch,train_loss,train_accuracy,val_loss,val_accuracy,lr,seconds,loader_wait");
  for (size_t row = 1; row < 4; ++row) {
    CHECK_THAT(log[row], Catch::StartsWith(std::to_string(row) + ","));
    CHECK(std::count(log[row].begin(), log[row].end(), ',') == 7);
  }
  CHECK(optim::read_progress(at + "last.safetensors").step == 15);
  CHECK(optim::read_progress(at + "best.safetensors").step > 0);
  CHECK(std::distance(fs::directory_iterator(at), fs::directory_iterator()) == 5);
  // The config as written starts the same run.
  Words again = short_run(folder, "again");
  again[1] = at + "config.yaml";
  REQUIRE(run(again).status == 0);
  CHECK(weights(folder / "outputs/again/last.safetensors") == weights(at + "last.safetensors"));
}

TEST_CASE("program: Ctrl-C stops cleanly and the resumed run has the same weights", "[program]") {
  TemporaryFolder folder;
  REQUIRE(run(long_run(folder, "whole")).status == 0);
  std::string right = weights(folder / "outputs/whole/last.safetensors");
  for (int number : {SIGINT, SIGTERM}) {
    std::string name = number == SIGINT ? "ctrl-c" : "terminated";
    std::string at = folder / "outputs/" + name, last = at + "/last.safetensors";
    Finished f = interrupted_run(long_run(folder, name), last, number);
    INFO(f.out << f.err);
    CHECK(f.status == 130);
    CHECK(f.err.empty());
    CHECK_THAT(f.out, Catch::Contains(" train --resume " + at + "\n"));
    optim::Progress stopped = optim::read_progress(last);
    CHECK(stopped.step > 0);
    CHECK(stopped.step < 600);
    CHECK(unfinished(at) == 0);
    Finished resumed = run({"train", "--resume", at, "data.workers=2"});
    CHECK(resumed.status == 0);
    CHECK_THAT(resumed.out, Catch::StartsWith("resuming " + at));
    CHECK(weights(last) == right);
    CHECK_THAT(TemporaryFolder::read(at + "/run.json"), Catch::Contains("\"resumed\": ["));
    CHECK(lines(TemporaryFolder::read(at + "/log.csv")).size() == 4);
  }
}

TEST_CASE("program: products of 16 bits train, and a resumed run knows f16's scale", "[program]") {
  TemporaryFolder folder;
  Words half = {"precision=f16", "clip_norm=1"};
  REQUIRE(run(with(long_run(folder, "whole"), half)).status == 0);
  std::string at = folder / "outputs/stopped";
  CHECK(interrupted_run(with(long_run(folder, "stopped"), half), at + "/last.safetensors", SIGINT)
            .status == 130);
  REQUIRE(run({"train", "--resume", at}).status == 0);
  CHECK(weights(at + "/last.safetensors") == weights(folder / "outputs/whole/last.safetensors"));
  // Points of two spirals: guessing is right half of the time.
  for (const char* precision : {"f16", "bf16"}) {
    Finished f = run(with(long_run(folder, precision),
                          {std::string("precision=") + precision, "optimizer.lr=0.01"}));
    CHECK(f.status == 0);
    size_t found = f.out.find("best validation accuracy ");
    REQUIRE(found != std::string::npos);
    CHECK(std::stod(f.out.substr(found + 25)) > 80);
  }
  check_refused(run(with(long_run(folder, "wrong"), {"precision=f8"})), {"precision", "'f8'"});
}

TEST_CASE("program: a run stopped behind the last batch of an epoch goes on", "[program]") {
  // Ctrl-C during the validation, or a kill just behind the last batch, leave such a checkpoint;
  // here it is made of one that was saved a moment later.
  TemporaryFolder folder;
  write_idx(folder);
  Words words = with(short_run(folder), {"schedule.name=constant"});
  REQUIRE(run(with(words, {"epochs=2", "run=whole"})).status == 0);
  REQUIRE(run(with(words, {"max_steps=3", "run=short"})).status == 0);
  std::string at = folder / "outputs/run", last = at + "/last.safetensors";

  REQUIRE(run(words).status == 0);
  rewind_epoch(last, 5, "epochs=2");
  Finished resumed = run({"train", "--resume", at});
  INFO(resumed.out << resumed.err);
  CHECK(resumed.status == 0);
  CHECK(weights(last) == weights(folder / "outputs/whole/last.safetensors"));
  CHECK(lines(TemporaryFolder::read(at + "/log.csv")).size() == 3);

  // The same at the end of a run that max_steps ends.
  at = folder / "outputs/short", last = at + "/last.safetensors";
  std::string right = weights(last);
  rewind_epoch(last, 3, "epochs=1");
  fs::remove(at + "/best.safetensors");
  CHECK(run({"train", "--resume", at}).status == 0);
  CHECK(weights(last) == right);
  CHECK(weights(at + "/best.safetensors") == right);
  CHECK(lines(TemporaryFolder::read(at + "/log.csv")).size() == 2);
}

TEST_CASE("program: a full disk while saving loses nothing", "[program]") {
  TemporaryFolder folder;
  REQUIRE(run(long_run(folder, "whole")).status == 0);
  std::string right = weights(folder / "outputs/whole/last.safetensors");
  SmallDisk disk(folder / "small", "size=4m");
  std::string at = disk.path + "/run", last = at + "/last.safetensors";
  Finished stopped =
      interrupted_run(with(long_run(folder, "run"), {"outputs=" + disk.path}), last, SIGINT);
  REQUIRE(stopped.status == 130);
  std::string before = TemporaryFolder::read(last);
  std::string filler = disk.path + "/filler";
  std::function<void()> limit;
  if (disk.there) {
    std::ofstream full(filler, std::ios::binary);
    const std::string page(4096, 'x');
    while (full.write(page.data(), 4096).flush()) {}
    full.close();
    fs::resize_file(filler,
                    fs::file_size(filler) - 8192);  // room for run.json, not for a checkpoint
  } else {
    WARN("no file system of its own: a limit on the size of files stands in for the full disk");
    limit = [] {
      rlimit most{20000, 20000};
      ::setrlimit(RLIMIT_FSIZE, &most);
      ::signal(SIGXFSZ, SIG_IGN);
    };
  }
  check_refused(run({"train", "--resume", at}, limit),
                {last, disk.there ? "No space left on device" : "File too large"});
  CHECK(TemporaryFolder::read(last) == before);
  CHECK(unfinished(at) == 0);
  fs::remove(filler);
  CHECK(run({"train", "--resume", at}).status == 0);
  CHECK(weights(last) == right);
}

TEST_CASE("program: an outputs folder that cannot be written", "[program]") {
  TemporaryFolder folder;
  write_idx(folder);
  fs::permissions(folder / "", fs::perms(0755));
  Words words = short_run(folder);
  fs::create_directory(folder / "closed");
  fs::permissions(folder / "closed", fs::perms(0555));
  // Permissions do not bind root.
  auto as_user = [] {
    if (::getuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(126);
  };
  check_refused(run(with(words, {"outputs=" + (folder / "closed")}), as_user),
                {folder / "closed/run", "Permission denied"});
  folder.write("file", "not a folder");
  check_refused(run(with(words, {"outputs=" + (folder / "file")})),
                {folder / "file", "Not a directory"});
  // A run that is there already but may not be changed.
  REQUIRE(run(words).status == 0);
  for (const char* name : {"outputs", "outputs/run"})
    fs::permissions(folder / name, fs::perms(0555));
  check_refused(run(words, as_user), {folder / "outputs/run", "Permission denied"});
  check_refused(run({"train", "--resume", folder / "outputs/run"}, as_user),
                {folder / "outputs/run", "Permission denied"});
  for (const char* name : {"outputs", "outputs/run"})
    fs::permissions(folder / name, fs::perms(0755));
}

TEST_CASE("program: a run that is not there cannot be resumed", "[program]") {
  TemporaryFolder folder;
  check_refused(run({"train", "--resume", folder / "none"}),
                {folder / "none/last.safetensors", "no such checkpoint"});
  CHECK_FALSE(fs::exists(folder / "none"));
  write_idx(folder);
  REQUIRE(run(short_run(folder)).status == 0);
  std::string at = folder / "outputs/run";
  check_refused(run({"train", "--resume", at, "optimizer.lr=1"}),
                {"keeps the settings", "optimizer.lr=1"});
  check_refused(run({"train", folder / "config.yaml", "--resume", at}), {"not both"});
  TemporaryFolder other;
  write_idx(other, 50);
  check_refused(run({"train", "--resume", at, "data.folder=" + (other / "")}),
                {at, "not those that the run began with"});
  // One that is finished says so and changes no weight; what a killed save left is taken away.
  folder.write("outputs/run/best.safetensors.unfinished-1-1", "half");
  std::string right = weights(at + "/last.safetensors");
  Finished f = run({"train", "--resume", at + "/"});
  CHECK(f.status == 0);
  CHECK_THAT(f.out, Catch::Contains("finished"));
  CHECK(unfinished(at) == 0);
  CHECK(weights(at + "/last.safetensors") == right);
}

TEST_CASE("program: a resumed run says which changes of its config.yaml do not count",
          "[program]") {
  TemporaryFolder folder;
  write_idx(folder);
  REQUIRE(run(short_run(folder)).status == 0);
  std::string at = folder / "outputs/run", path = at + "/config.yaml";
  auto says = [&](const Words& words, const std::string& part) {
    Finished f = run(with({"train", "--resume", at}, words));
    CHECK(f.status == 0);
    CHECK(f.err.empty());
    CHECK_THAT(f.out, Catch::StartsWith(path + ": " + part));
  };
  std::string text = TemporaryFolder::read(path);
  CHECK(run({"train", "--resume", at}).out.find("config.yaml") == std::string::npos);
  std::string edited = text;
  edited.replace(edited.find("lr: 0.001"), 9, "lr: 0.1");
  edited.replace(edited.find("epochs: 1"), 9, "epochs: 4");
  folder.write("outputs/run/config.yaml", edited);
  says({},
       "was changed, but the checkpoint's settings count: epochs is 1, not 4, "
       "optimizer.lr is 0.001, not 0.1\n");
  folder.write("outputs/run/config.yaml", "epochs: [\n");
  says({}, "line ");
  folder.write("outputs/run/config.yaml", "epoch: 3\n");
  says({},
       "line 1: unknown key 'epoch'; did you mean 'epochs'?; it does not count here, the "
       "checkpoint's settings do\n");
  // What the command line changes is no surprise; a folder that was moved is none either.
  folder.write("outputs/run/config.yaml", text);
  fs::rename(at, folder / "moved");
  Finished moved = run({"train", "--resume", folder / "moved", "data.workers=2"});
  CHECK(moved.status == 0);
  CHECK(moved.out.find("config.yaml") == std::string::npos);
  fs::remove(folder / "moved/config.yaml");
  CHECK(run({"train", "--resume", folder / "moved"}).status == 0);
}

TEST_CASE("program: a warmup that is longer than the run is no secret", "[program]") {
  TemporaryFolder folder;
  write_idx(folder);
  const std::string said = "schedule.warmup: the run has 5 steps in all, so the warmup takes 4 of ";
  Finished f = run(with(short_run(folder), {"schedule.warmup=70"}));
  CHECK(f.status == 0);
  CHECK_THAT(f.out, Catch::Contains(said + "them, not 70\n"));
  f = run(with(short_run(folder), {"schedule.warmup=5"}));
  CHECK_THAT(f.out, Catch::Contains(said + "them, not 5\n"));
  for (const char* word : {"schedule.warmup=4", "schedule.name=constant"}) {
    f = run(with(short_run(folder), {word}));
    CHECK(f.out.find("schedule.warmup") == std::string::npos);
  }
}

TEST_CASE("program: a name used twice overwrites nothing", "[program]") {
  TemporaryFolder folder;
  write_idx(folder);
  REQUIRE(run(short_run(folder)).status == 0);
  std::string first = weights(folder / "outputs/run/last.safetensors");
  Finished second = run(with(short_run(folder), {"seed=2"}));
  CHECK(second.status == 0);
  CHECK_THAT(second.out, Catch::Contains("moved the older run to " + (folder / "outputs/run.1")));
  CHECK(weights(folder / "outputs/run.1/last.safetensors") == first);
  CHECK(weights(folder / "outputs/run/last.safetensors") != first);
  REQUIRE(run(short_run(folder)).status == 0);
  CHECK(weights(folder / "outputs/run.1/last.safetensors") == first);
  CHECK(weights(folder / "outputs/run/last.safetensors") == first);
  CHECK(fs::exists(folder / "outputs/run.2/last.safetensors"));
}

TEST_CASE("program: two programs do not train in one folder", "[program]") {
  TemporaryFolder folder;
  std::string at = folder / "outputs/run";
  Program running(with(long_run(folder, "run"), {"epochs=1000"}));
  wait_for_step(at + "/last.safetensors", 7);
  check_refused(run(long_run(folder, "run")), {at, "another program is training there"});
  check_refused(run({"train", "--resume", at}), {at, "another program is training there"});
  running.signal(SIGINT);
  CHECK(running.wait().status == 130);
  CHECK_FALSE(fs::exists(at + ".1"));
}
