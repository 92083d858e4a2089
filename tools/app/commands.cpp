#include "tapegrad/tools/app/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tapegrad/autograd/grad_mode.h"
#include "tapegrad/autograd/ops.h"
#include "tapegrad/core/cuda/cuda.h"
#include "tapegrad/core/io/safetensors.h"
#include "tapegrad/core/parallel.h"
#include "tapegrad/core/random.h"
#include "tapegrad/tools/app/code_version.h"
#include "tapegrad/tools/app/interrupt.h"
#include "tapegrad/tools/app/sha256.h"
#include "tapegrad/tools/app/trainer.h"

namespace tg::app {
namespace fs = std::filesystem;

namespace {

constexpr int kInterrupted = 130;  // as shells have it for Ctrl-C

// Settings that change how work is carried out but not what comes out of it.
const std::vector<std::string> kResumeKeys = {"threads", "data.workers", "data.folder",
                                              "checkpoint_every"};
const std::vector<std::string> kEvalKeys = {"threads", "data.workers", "data.folder"};

bool is_one_of(const std::string& word, const std::vector<std::string>& keys) {
  return std::find(keys.begin(), keys.end(), word.substr(0, word.find('='))) != keys.end();
}

void check_overrides(const std::string& what, const std::vector<std::string>& overrides,
                     const std::vector<std::string>& keys) {
  std::string list;
  for (const std::string& key : keys) list += (list.empty() ? "" : ", ") + key;
  for (const std::string& word : overrides)
    check<ValueError>(is_one_of(word, keys), what, "keeps the settings of its run; only", list,
                      "can be given, not '" + word + "'");
}

TrainConfig with_overrides(const TrainConfig& config, const std::vector<std::string>& overrides,
                           const std::string& source) {
  TrainConfig changed = parse_config(to_yaml(config), source);
  apply_overrides(changed, overrides);
  return changed;
}

// A run goes on as its checkpoint says. Who has changed the config.yaml that lies beside it learns
// that, in one line; what the command line sets is no surprise.
void compare_with_file(const TrainConfig& counts, const fs::path& folder,
                       const std::vector<std::string>& overrides) {
  std::string path = (folder / "config.yaml").string();
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return;
  std::vector<std::string> except = {"run", "outputs"};  // the folder may have been moved
  for (const std::string& word : overrides) except.push_back(word.substr(0, word.find('=')));
  std::string differing;
  try {
    differing = differences(counts, load_config(path, {}), except);
  } catch (const Error& e) {
    fmt::print("{}; it does not count here, the checkpoint's settings do\n", e.what());
    return;
  }
  if (!differing.empty())
    fmt::print("{}: was changed, but the checkpoint's settings count: {}\n", path, differing);
}

// The model of a checkpoint, with its weights.
Model load_model(const std::string& checkpoint, const Trained& trained) {
  if (trained.config.threads > 0) set_num_threads(int(trained.config.threads));
  Model model = make_model(trained.config, trained.image_shape, int64_t(trained.classes.size()));
  optim::CheckpointParts parts;
  parts.model = &model.module();
  optim::load_checkpoint(checkpoint, parts);
  model.module().eval();
  return model;
}

// The test images, if they are of the kind that the checkpoint was trained on.
std::shared_ptr<const Images> test_images(const std::string& checkpoint, const Trained& trained) {
  Task task = load_task(trained.config);
  const std::string& name = trained.config.data.name;
  check<ValueError>(task.image_shape == trained.image_shape, checkpoint,
                    ": was trained on images of shape", trained.image_shape, ", but those of", name,
                    "are", task.image_shape);
  check<ValueError>(task.classes == trained.classes, checkpoint, ": was trained on",
                    trained.classes.size(), "classes that are not the", task.classes.size(), "of",
                    name);
  return task.test;
}

void print_prediction(const std::string& name, const Tensor& logits,
                      const std::vector<std::string>& classes, const std::string& truth) {
  Tensor p = softmax(logits, 0);
  int64_t best = argmax(p).item<int64_t>();
  std::string line =
      fmt::format("{:<28} {:<14} {:5.1f}%", name, classes[size_t(best)], 100 * p[best].item());
  if (!truth.empty())
    line += truth == classes[size_t(best)] ? "  right" : "  wrong: it is " + truth;
  fmt::print("{}\n", line);
}

}  // namespace

int train_command(const TrainArguments& arguments) {
  catch_interrupts();
  TrainConfig config;
  bool resume = !arguments.resume.empty();
  if (resume) {
    check<ValueError>(arguments.config.empty(), "give a config or --resume, not both");
    check_overrides("a resumed run", arguments.overrides, kResumeKeys);
    fs::path folder = fs::path(arguments.resume).lexically_normal();
    if (folder.filename().empty()) folder = folder.parent_path();
    std::error_code error;
    if (folder.filename() == "." || folder.filename() == "..")
      folder = fs::canonical(folder, error);
    check<FileError>(!fs::is_regular_file(folder, error), arguments.resume,
                     ": --resume takes the folder of a run, not a file in it");
    std::string last = (folder / "last.safetensors").string();
    bool there = fs::exists(last, error);
    check<FileError>(there || error, last, ": no such checkpoint to resume from");
    config = with_overrides(read_trained(last).config, arguments.overrides, last);
    config.run = folder.filename().string();
    config.outputs = folder.parent_path().string();
    validate(config);
    compare_with_file(config, folder, arguments.overrides);
  } else {
    check<ValueError>(!arguments.config.empty(),
                      "give a config file, or --resume with the folder of a run");
    config = load_config(arguments.config, arguments.overrides);
  }
  Trainer trainer(config);
  if (resume)
    trainer.resume(arguments.command);
  else
    trainer.start(arguments.command);
  if (!trainer.run()) return kInterrupted;
  std::string best = RunFolder(config).best();
  std::vector<std::string> of_eval;
  for (const std::string& word : arguments.overrides)
    if (is_one_of(word, kEvalKeys)) of_eval.push_back(word);
  return eval_command(best, of_eval);
}

int eval_command(const std::string& checkpoint, const std::vector<std::string>& overrides) {
  check_overrides("a checkpoint", overrides, kEvalKeys);
  Trained trained = read_trained(checkpoint);
  trained.config = with_overrides(trained.config, overrides, checkpoint);
  Model model = load_model(checkpoint, trained);
  Score score =
      evaluate(model, test_images(checkpoint, trained), 256, int(trained.config.data.workers));
  if (interrupted()) {
    fmt::print("stopped before the end of the test; run it with: tapegrad eval {}\n", checkpoint);
    return kInterrupted;
  }
  fmt::print("test: loss {:.4f}, accuracy {:.2f}% of {} images ({})\n", score.loss(),
             100 * score.accuracy(), score.count, checkpoint);
  return 0;
}

int predict_command(const std::string& checkpoint, const std::vector<std::string>& files,
                    int samples) {
  check<ValueError>(samples >= 0, "--samples must be at least 0, not", samples);
  check<ValueError>(!files.empty() || samples > 0,
                    "give picture files, or --samples N for test images");
  NoGradGuard no_grad;
  Trained trained = read_trained(checkpoint);
  Model model = load_model(checkpoint, trained);
  for (const std::string& file : files) {
    Tensor image = load_picture(file, trained.config, trained.image_shape);
    print_prediction(fs::path(file).filename().string(), model(unsqueeze(image, 0))[0],
                     trained.classes, "");
  }
  if (samples <= 0) return 0;
  Generator random;
  std::shared_ptr<const Images> test = test_images(checkpoint, trained);
  for (int64_t i = 0; i < std::min<int64_t>(samples, test->size()); ++i) {
    auto [image, label] = test->get(i, random);
    print_prediction(fmt::format("test image {}", i), model(unsqueeze(image, 0))[0],
                     trained.classes, trained.classes[size_t(label.item<int64_t>())]);
  }
  return 0;
}

namespace {

// Of the values, names and shapes; equal weights give equal hashes, wherever they came from.
std::string weights_hash(const std::string& checkpoint) {
  Sha256 hash;
  for (const auto& [name, tensor] : load_safetensors(checkpoint)) {
    if (name.rfind("model.", 0) != 0) continue;
    std::string head = name + to_text(tensor);
    hash.add(head.data(), head.size());
    hash.add(tensor.read().data, size_t(tensor.numel()) * size_of(tensor.dtype()));
  }
  return hash.hex();
}

}  // namespace

int info_command(const std::string& checkpoint) {
  if (!checkpoint.empty()) {
    optim::Progress at = optim::read_progress(checkpoint);
    fmt::print("epochs     {} done, {} batches into the next\n", at.epoch, at.position);
    fmt::print("steps      {}\n", at.step);
    fmt::print("weights    sha256 {}\n", weights_hash(checkpoint));
    fmt::print("config\n{}", at.user.count("config") ? at.user.at("config") : "none\n");
    return 0;
  }
  fmt::print("tapegrad   {} ({})\n", TAPEGRAD_VERSION, code_commit());
  fmt::print("compiler   {}\n", __VERSION__);
  fmt::print("compiled   for {}\n", TAPEGRAD_ARCH);
  fmt::print("threads    {}\n", num_threads());
  fmt::print("device     cpu\n");
  fmt::print("device     cuda: {}\n", cuda_status());
  return 0;
}

}  // namespace tg::app
