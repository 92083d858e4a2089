// Checkpoints: a resumed run equals an uninterrupted one; a wrong file changes nothing.
#include <cstring>
#include <filesystem>
#include <fstream>

#include "nn/reference.h"
#include "tapegrad/core/io/atomic_file.h"
#include "tapegrad/core/io/safetensors.h"
#include "tapegrad/optim/optim.h"
#include "temporary_folder.h"

using namespace tg;
using test::pattern;

namespace {

// A file name in the folder for temporary files, removed at the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name)
      : path_((std::filesystem::temp_directory_path() / ("tapegrad_" + name)).string()) {}
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A model with dropout, its optimizer and its schedule, trained on numbers that the step decides.
struct Run {
  nn::Sequential model{nn::Linear(6, 8), nn::BatchNorm1d(8), nn::ReLU(), nn::Dropout(0.3),
                       nn::Linear(8, 3)};
  optim::AdamW optimizer{model, {.lr = 0.01}};
  optim::CosineLR schedule{optimizer, {.total_steps = 20, .warmup_steps = 3}};

  void train(int64_t from, int64_t to) {
    for (int64_t step = from; step < to; ++step) {
      optimizer.zero_grad();
      Tensor target = tensor(std::vector<int64_t>{step % 3, 0, 1, 2}, {4});
      cross_entropy(model(pattern({4, 6}, step, f32)), target).backward();
      optimizer.step();
      schedule.step();
    }
  }
  optim::CheckpointParts parts() {
    return {&model, &optimizer, &schedule, {{"default", &default_generator()}}};
  }
};

std::vector<float> weights(const nn::Module& model) {
  std::vector<float> all;
  for (auto& [name, x] : model.state_dict())
    for (float v : x.to_vector<float>()) all.push_back(v);
  return all;
}

}  // namespace

TEST_CASE("a run that resumes from a checkpoint has the bits of one that was not interrupted",
          "[optim]") {
  TemporaryFile file("resume.safetensors");
  manual_seed(4);
  Run run;
  run.train(0, 7);
  optim::save_checkpoint(file.path(), run.parts(),
                         {.epoch = 2, .step = 7, .position = 5, .user = {{"best", "0.93 at 1"}}});
  run.train(7, 12);

  manual_seed(99);
  Run other;
  optim::Progress progress = optim::load_checkpoint(file.path(), other.parts());
  CHECK(progress.epoch == 2);
  CHECK(progress.step == 7);
  CHECK(progress.position == 5);
  CHECK(progress.user.at("best") == "0.93 at 1");
  CHECK(other.schedule.step_count() == 7);
  other.train(progress.step, 12);
  CHECK(weights(other.model) == weights(run.model));
  CHECK(other.optimizer.group(0).lr == run.optimizer.group(0).lr);
  CHECK(optim::read_progress(file.path()).epoch == 2);
}

TEST_CASE("a checkpoint of another model gives one line that names the difference", "[optim]") {
  TemporaryFile file("other.safetensors");
  Run run;
  run.train(0, 1);
  optim::save_checkpoint(file.path(), run.parts());

  Run wrong;
  wrong.model.at<nn::Linear>(4) = nn::Linear(8, 5);
  std::vector<float> before = weights(wrong.model);
  try {
    optim::load_checkpoint(file.path(), {.model = &wrong.model});
    FAIL("no error");
  } catch (const FileError& e) {
    std::string text = e.what();
    CHECK(text ==
          "checkpoint " + file.path() +
              ": Sequential: the state does not fit, nothing was loaded: different: 4.weight is "
              "f32[5,8] here and f32[3,8] in the state, 4.bias is f32[5] here and f32[3] in the "
              "state");
  }
  CHECK(weights(wrong.model) == before);

  // The optimizer does not fit: the model is not touched either.
  Run third;
  optim::SGD sgd(third.model);
  before = weights(third.model);
  CHECK_THROWS_WITH(optim::load_checkpoint(file.path(), {.model = &third.model, .optimizer = &sgd}),
                    Catch::EndsWith("SGD cannot take over the saved state: it is of AdamW"));
  CHECK(weights(third.model) == before);
}

TEST_CASE("a checkpoint whose parts have other dtypes or shapes changes nothing", "[optim]") {
  TemporaryFile file("types.safetensors");
  Run run;
  run.train(0, 1);
  optim::save_checkpoint(file.path(), run.parts());
  auto refused = [&](Run& other, const std::string& part) {
    std::vector<float> before = weights(other.model);
    CHECK_THROWS_WITH(
        optim::load_checkpoint(file.path(), other.parts()),
        Catch::StartsWith("checkpoint " + file.path() + ": ") && Catch::Contains(part));
    CHECK(weights(other.model) == before);
    CHECK(other.schedule.step_count() == 0);
  };
  Run wide;
  wide.model.to(f64);
  refused(wide, "0.weight is f64 here and f32 in the state");
  // The weights fit, what the optimizer keeps of one of them does not.
  nn::Parameter extra(ones({3}));
  Run grouped;
  grouped.optimizer.add_group(optim::Parameters(NamedTensors{{"extra", extra}}), {});
  refused(grouped, "it has 1 parameter groups, this optimizer 2");
  SafetensorsFile saved(file.path());
  NamedTensors tensors = load_safetensors(file.path());
  for (auto& [name, x] : tensors)
    if (name == "optimizer.0.weight.exp_avg") x = zeros({6, 8});
  save_safetensors(file.path(), tensors, saved.metadata());
  Run fresh;
  refused(fresh, "damaged");  // its checksum tells
}

TEST_CASE("parts that a file does not hold, and files that are no checkpoint", "[optim]") {
  TemporaryFile file("parts.safetensors");
  Run run;
  optim::save_checkpoint(file.path(), {.model = &run.model});
  CHECK_THROWS_WITH(optim::load_checkpoint(file.path(), {.optimizer = &run.optimizer}),
                    Catch::EndsWith("it holds no optimizer"));
  CHECK_THROWS_WITH(optim::load_checkpoint(file.path(), run.parts()),
                    Catch::EndsWith("it holds no optimizer"));
  save_safetensors(file.path(), run.model.state_dict());
  CHECK_THROWS_WITH(optim::load_checkpoint(file.path(), {.model = &run.model}),
                    Catch::Contains("weights alone are read with load_safetensors"));
  CHECK_THROWS_AS(optim::load_checkpoint(file.path() + ".absent", {.model = &run.model}),
                  FileError);
}

TEST_CASE("a checkpoint with a flipped bit is refused wherever the bit is", "[optim]") {
  TemporaryFile file("flipped.safetensors"), flipped("flipped_bit.safetensors");
  Run run;
  run.train(0, 2);
  optim::save_checkpoint(file.path(), run.parts(), {.step = 2, .user = {{"config", "epochs: 3"}}});
  std::string bytes = TemporaryFolder::read(file.path());
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), 8);
  size_t text_end = bytes.find_last_of('}', size_t(8 + header)) + 1;  // spaces fill up to the data
  std::vector<float> before = weights(run.model);
  int accepted = 0;
  for (size_t at = 0; at < bytes.size(); at += at < 8 + header ? 3 : 29) {
    if (at >= text_end && at < 8 + header) continue;
    std::string bad = bytes;
    bad[at] = char(bad[at] ^ (1 << at % 8));
    std::ofstream(flipped.path(), std::ios::binary) << bad;
    try {
      optim::load_checkpoint(flipped.path(), run.parts());
      UNSCOPED_INFO("accepted with a flip in byte " << at);
      ++accepted;
    } catch (const FileError& e) {
      if (std::string(e.what()).find(flipped.path()) == std::string::npos) FAIL(e.what());
    }
    CHECK_THROWS_AS(optim::read_progress(flipped.path()), FileError);
  }
  CHECK(accepted == 0);
  CHECK(weights(run.model) == before);
}

TEST_CASE("a full disk while saving leaves the checkpoint that was there", "[optim]") {
  TemporaryFile file("full.safetensors");
  Run run;
  optim::save_checkpoint(file.path(), run.parts(), {.epoch = 1});
  run.train(0, 2);
  io::fail_writes_after(100);
  CHECK_THROWS_AS(optim::save_checkpoint(file.path(), run.parts(), {.epoch = 2}), FileError);
  io::fail_writes_after(-1);
  CHECK(optim::load_checkpoint(file.path(), run.parts()).epoch == 1);
}
