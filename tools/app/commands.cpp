#include "tapegrad/tools/app/commands.h"

#include <fmt/format.h>

#include <filesystem>

#include "tapegrad/autograd/grad_mode.h"
#include "tapegrad/autograd/ops.h"
#include "tapegrad/core/io/safetensors.h"
#include "tapegrad/core/parallel.h"
#include "tapegrad/core/random.h"
#include "tapegrad/tools/app/interrupt.h"
#include "tapegrad/tools/app/sha256.h"
#include "tapegrad/tools/app/trainer.h"

namespace tg::app {
namespace fs = std::filesystem;

namespace {

constexpr int kInterrupted = 130;  // as shells have it for Ctrl-C

// Keys that change how a run is carried out but not what comes out of it.
void check_resume_overrides(const std::vector<std::string>& overrides) {
  for (const std::string& word : overrides) {
    std::string key = word.substr(0, word.find('='));
    check<ValueError>(
        key == "threads" || key == "data.workers" || key == "checkpoint_every" ||
            key == "data.folder",
        "a resumed run keeps its settings; only threads, data.workers, data.folder and "
        "checkpoint_every can be given, not " +
            key);
  }
}

TrainConfig with_overrides(const TrainConfig& config, const std::vector<std::string>& overrides,
                           const std::string& source) {
  TrainConfig changed = parse_config(to_yaml(config), source);
  apply_overrides(changed, overrides);
  return changed;
}

// The model of a checkpoint with its weights, and the task it was trained for.
struct Trained {
  TrainConfig config;
  Task task;
  Model model;
};
Trained load_trained(const std::string& checkpoint, const std::vector<std::string>& overrides) {
  TrainConfig config = with_overrides(config_of_checkpoint(checkpoint), overrides, checkpoint);
  if (config.threads > 0) set_num_threads(int(config.threads));
  Task task = load_task(config);
  Model model = make_model(config, task.image_shape, int64_t(task.classes.size()));
  optim::CheckpointParts parts;
  parts.model = &model.module();
  optim::load_checkpoint(checkpoint, parts);
  model.module().eval();
  return {std::move(config), std::move(task), std::move(model)};
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
    check_resume_overrides(arguments.overrides);
    fs::path folder = fs::path(arguments.resume).lexically_normal();
    if (folder.filename().empty()) folder = folder.parent_path();
    std::string last = (folder / "last.safetensors").string();
    check<FileError>(fs::exists(last), last, ": no such checkpoint to resume from");
    config = with_overrides(config_of_checkpoint(last), arguments.overrides, last);
    config.run = folder.filename().string();
    config.outputs = folder.parent_path().string();
  } else {
    check<ValueError>(!arguments.config.empty(),
                      "give a config file, or --resume with the folder of a run");
    config = load_config(arguments.config, arguments.overrides);
  }
  Trainer trainer(config);
  if (resume)
    trainer.resume();
  else
    trainer.start();
  if (!trainer.run()) return kInterrupted;
  std::string best = RunFolder(config).best();
  if (!fs::exists(best)) return 0;
  return eval_command(best, arguments.overrides);
}

int eval_command(const std::string& checkpoint, const std::vector<std::string>& overrides) {
  std::vector<std::string> allowed;
  for (const std::string& word : overrides)
    if (word.rfind("threads=", 0) == 0 || word.rfind("data.folder=", 0) == 0 ||
        word.rfind("data.workers=", 0) == 0)
      allowed.push_back(word);
  Trained trained = load_trained(checkpoint, allowed);
  Score score = evaluate(trained.model, trained.task.test, 256, int(trained.config.data.workers));
  if (interrupted()) return kInterrupted;
  fmt::print("test: loss {:.4f}, accuracy {:.2f}% of {} images ({})\n", score.loss(),
             100 * score.accuracy(), score.count, checkpoint);
  return 0;
}

int predict_command(const std::string& checkpoint, const std::vector<std::string>& files,
                    int samples) {
  check<ValueError>(!files.empty() || samples > 0,
                    "give picture files, or --samples N for test images");
  NoGradGuard no_grad;
  Trained trained = load_trained(checkpoint, {});
  for (const std::string& file : files) {
    Tensor image = load_picture(file, trained.config, trained.task.image_shape);
    print_prediction(fs::path(file).filename().string(), trained.model(unsqueeze(image, 0))[0],
                     trained.task.classes, "");
  }
  Generator random;
  const Images& test = *trained.task.test;
  for (int64_t i = 0; i < std::min<int64_t>(samples, test.size()); ++i) {
    auto [image, label] = test.get(i, random);
    print_prediction(fmt::format("test image {}", i), trained.model(unsqueeze(image, 0))[0],
                     trained.task.classes, trained.task.classes[size_t(label.item<int64_t>())]);
  }
  return 0;
}

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

int info_command(const std::string& checkpoint) {
  if (!checkpoint.empty()) {
    optim::Progress at = optim::read_progress(checkpoint);
    fmt::print("epochs     {} done, {} batches into the next\n", at.epoch, at.position);
    fmt::print("steps      {}\n", at.step);
    fmt::print("weights    sha256 {}\n", weights_hash(checkpoint));
    fmt::print("config\n{}", at.user.count("config") ? at.user.at("config") : "none\n");
    return 0;
  }
  fmt::print("tapegrad   {}\n", TAPEGRAD_VERSION);
  fmt::print("compiler   {}\n", __VERSION__);
  fmt::print("compiled   for {}\n", TAPEGRAD_ARCH);
  fmt::print("threads    {}\n", num_threads());
  fmt::print("device     cpu\n");
  fmt::print("device     cuda: not in this build\n");
  return 0;
}

}  // namespace tg::app
