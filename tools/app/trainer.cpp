#include "tapegrad/tools/app/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>

#include "tapegrad/autograd/autocast.h"
#include "tapegrad/autograd/grad_mode.h"
#include "tapegrad/autograd/ops.h"
#include "tapegrad/core/cuda/cuda.h"
#include "tapegrad/core/parallel.h"
#include "tapegrad/core/random.h"
#include "tapegrad/optim/adam.h"
#include "tapegrad/optim/clip.h"
#include "tapegrad/optim/sgd.h"
#include "tapegrad/tools/app/interrupt.h"
#include "tapegrad/tools/app/progress.h"

namespace tg::app {
namespace {

data::LoaderOptions loader_options(const TrainConfig& c) {
  data::LoaderOptions o;
  o.batch_size = c.data.batch_size;
  o.shuffle = true;
  o.workers = int(c.data.workers);
  o.seed = uint64_t(c.seed);
  return o;
}

std::unique_ptr<optim::Optimizer> make_optimizer(const TrainConfig& c, const nn::Module& model) {
  const auto& o = c.optimizer;
  if (o.name == "sgd") {
    optim::SGDOptions options;
    options.lr = o.lr;
    options.momentum = o.momentum;
    options.weight_decay = o.weight_decay;
    return std::make_unique<optim::SGD>(model, options);
  }
  if (o.name == "adam") {
    optim::AdamOptions options;
    options.lr = o.lr;
    options.weight_decay = o.weight_decay;
    return std::make_unique<optim::Adam>(model, options);
  }
  optim::AdamWOptions options;
  options.lr = o.lr;
  options.weight_decay = o.weight_decay;
  return std::make_unique<optim::AdamW>(model, options);
}

int64_t total_steps(const TrainConfig& c, int64_t batches) {
  int64_t all = c.epochs * batches;
  return c.max_steps > 0 ? std::min(all, c.max_steps) : all;
}

// As many as asked for, where the run has that many and one more. A run that is cut short, by
// max_steps to try a config out, still works; Trainer::run says so.
int64_t warmup_steps(const TrainConfig& c, int64_t steps) {
  return std::min(c.schedule.warmup, steps - 1);
}

std::unique_ptr<optim::Schedule> make_schedule(const TrainConfig& c, optim::Optimizer& optimizer,
                                               int64_t steps) {
  if (c.schedule.name == "constant") return std::make_unique<optim::ConstantLR>(optimizer);
  optim::CosineLROptions options;
  options.total_steps = std::max<int64_t>(1, steps);
  options.warmup_steps = warmup_steps(c, options.total_steps);
  return std::make_unique<optim::CosineLR>(optimizer, options);
}

// Seeds and threads come before the model, which draws its weights.
TrainConfig prepared(TrainConfig c) {
  const Device device(c.device);
  check<DeviceError>(device.is_cpu() || device.index < cuda_device_count(),
                     "device:", "'" + c.device + "'",
                     "is none that the program trains on; it has cpu; cuda:", cuda_status());
  if (c.threads > 0) set_num_threads(int(c.threads));
  manual_seed(uint64_t(c.seed));
  return c;
}

Model on_device(Model model, Device device) {
  model.module().to(device);
  return model;
}

// ---- Numbers as text in a checkpoint; doubles in the shortest form that reads back the same ----
template <class T>
T parsed(const std::map<std::string, std::string>& user, const std::string& key) {
  auto found = user.find(key);
  T v{};
  bool ok = found != user.end();
  if (ok) {
    const std::string& t = found->second;
    auto [end, error] = std::from_chars(t.data(), t.data() + t.size(), v);
    ok = error == std::errc() && end == t.data() + t.size();
  }
  check<FileError>(ok, "the checkpoint has no valid number for", key);
  return v;
}
double number(const std::map<std::string, std::string>& user, const std::string& key) {
  return parsed<double>(user, key);
}
int64_t count(const std::map<std::string, std::string>& user, const std::string& key) {
  auto n = parsed<int64_t>(user, key);
  check<FileError>(n >= 0, "the checkpoint has", n, "for", key);
  return n;
}

// As a shell takes it for one word.
std::string shell_word(const std::string& word) {
  bool plain = !word.empty();
  for (char c : word)
    plain = plain && (std::isalnum(static_cast<unsigned char>(c)) ||
                      std::string("_-./+=,:@%").find(c) != std::string::npos);
  if (plain) return word;
  std::string quoted = "'";
  for (char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    lines.push_back(text.substr(at, end - at));
  return lines;
}

template <class Row, class Visit>
void for_each_figure(Row& r, Visit visit) {
  visit("train_loss", r.train_loss), visit("train_accuracy", r.train_accuracy);
  visit("val_loss", r.val_loss), visit("val_accuracy", r.val_accuracy);
  visit("lr", r.lr), visit("seconds", r.seconds), visit("loader_wait", r.loader_wait);
}

}  // namespace

void Score::add(const Tensor& loss, const Tensor& logits, const Tensor& labels) {
  NoGradGuard no_grad;
  int64_t n = labels.size(0);
  loss_sum += loss.item() * double(n);
  correct += sum(eq(argmax(logits, 1), labels)).item<int64_t>();
  count += n;
}

Score evaluate(Model& model, const std::shared_ptr<const Images>& images, int64_t batch_size,
               int workers) {
  NoGradGuard no_grad;
  nn::EvalGuard eval(model.module());
  data::LoaderOptions options;
  options.batch_size = batch_size;
  options.workers = workers;
  data::DataLoader<data::ImageAndLabel> loader(images, options);
  const Device device = model.module().parameters().at(0).device();
  Score score;
  for (auto [x_here, y_here] : loader) {
    if (interrupted()) break;
    const Tensor x = x_here.to(device), y = y_here.to(device);
    Tensor logits = model(x);
    score.add(cross_entropy(logits, y), logits, y);
  }
  return score;
}

Trainer::Trainer(TrainConfig config)
    : config_(prepared(std::move(config))),
      device_(config_.device),
      folder_(config_),
      task_(load_task(config_)),
      model_(on_device(make_model(config_, task_.image_shape, int64_t(task_.classes.size())),
                       device_)),
      loader_(task_.train, loader_options(config_)),
      optimizer_(make_optimizer(config_, model_.module())),
      schedule_(make_schedule(config_, *optimizer_, total_steps(config_, loader_.size()))),
      scaler_({.enabled = config_.precision == "f16"}) {}

optim::CheckpointParts Trainer::parts() {
  optim::CheckpointParts p;
  p.model = &model_.module();
  p.optimizer = optimizer_.get();
  p.schedule = schedule_.get();
  if (scaler_.is_enabled()) p.scaler = &scaler_;
  p.generators = {{"default", &default_generator(device_)}};
  return p;
}

void Trainer::save(const std::string& path) {
  data::LoaderState at = loader_.state();
  optim::Progress p;
  p.epoch = at.epoch;
  p.position = at.batch;
  p.step = step_;
  p.user["config"] = to_yaml(config_);
  p.user["data_sha256"] = task_.checksum;
  p.user["classes"] = join(task_.classes);
  p.user["image_rank"] = std::to_string(task_.image_shape.rank());
  for (int d = 0; d < task_.image_shape.rank(); ++d)
    p.user["image_size." + std::to_string(d)] = std::to_string(task_.image_shape[d]);
  p.user["score.loss_sum"] = to_text(score_.loss_sum);
  p.user["score.correct"] = std::to_string(score_.correct);
  p.user["score.count"] = std::to_string(score_.count);
  p.user["best_accuracy"] = to_text(best_accuracy_);
  p.user["epochs"] = std::to_string(rows_.size());
  for (EpochRow& r : rows_)
    for_each_figure(r, [&](const char* name, double v) {
      p.user["log." + std::to_string(r.epoch) + "." + name] = to_text(v);
    });
  optim::save_checkpoint(path, parts(), p);
}

void Trainer::start(const std::vector<std::string>& command) {
  if (!command.empty()) program_ = command[0];
  folder_.start(config_, task_.checksum, command);
  try {
    save(folder_.last());
  } catch (...) {
    folder_.take_back();
    throw;
  }
}

void Trainer::resume(const std::vector<std::string>& command) {
  if (!command.empty()) program_ = command[0];
  folder_.lock();
  check<ValueError>(optim::read_progress(folder_.last()).user["data_sha256"] == task_.checksum,
                    folder_.path(), ": the training data are not those that the run began with");
  optim::Progress p = optim::load_checkpoint(folder_.last(), parts());
  step_ = p.step;
  score_.loss_sum = number(p.user, "score.loss_sum");
  score_.correct = count(p.user, "score.correct");
  score_.count = count(p.user, "score.count");
  best_accuracy_ = number(p.user, "best_accuracy");
  auto epochs = count(p.user, "epochs");
  for (int64_t e = 1; e <= epochs; ++e) {
    EpochRow row;
    row.epoch = e;
    for_each_figure(row, [&](const char* name, double& v) {
      v = number(p.user, "log." + std::to_string(e) + "." + name);
    });
    rows_.push_back(row);
  }
  loader_.load_state({p.epoch, p.position});
  folder_.note_resume(command);
  if (!rows_.empty()) folder_.write_log(rows_);  // the end may have come before its last line
  if (!finished())
    fmt::print("resuming {} at epoch {}, batch {} of {}\n", folder_.path(), p.epoch + 1, p.position,
               loader_.size());
}

bool Trainer::finished() const {
  data::LoaderState at = loader_.state();
  if (at.batch > 0) return false;  // in an epoch: if no batch is left of it, its validation is
  return at.epoch >= config_.epochs || (config_.max_steps > 0 && step_ >= config_.max_steps);
}

std::string Trainer::resume_hint() const {
  return fmt::format("stopped after {} steps; go on with: {} train --resume {}", step_,
                     shell_word(program_), shell_word(folder_.path()));
}

bool Trainer::run() {
  fmt::print("{}: {} with {} parameters on {} ({} images, {} held back), {} threads\n",
             folder_.path(), config_.model.name, model_.module().parameter_count(),
             config_.data.name, task_.train->size(), task_.validation->size(), num_threads());
  int64_t steps = total_steps(config_, loader_.size());
  if (config_.schedule.name == "cosine" && config_.schedule.warmup >= steps)
    fmt::print(
        "schedule.warmup: the run has {} steps in all, so the warmup takes {} of them, not {}\n",
        steps, warmup_steps(config_, steps), config_.schedule.warmup);
  while (!finished())
    if (!run_epoch()) {
      save(folder_.last());
      fmt::print("{}\n", resume_hint());
      return false;
    }
  fmt::print("finished: best validation accuracy {:.2f}%, checkpoints in {}\n",
             100 * best_accuracy_, folder_.path());
  return true;
}

bool Trainer::run_epoch() {
  int64_t epoch = loader_.epoch(), batches = loader_.size();
  int64_t first = loader_.state().batch;
  int64_t last =
      config_.max_steps > 0 ? std::min(batches, first + config_.max_steps - step_) : batches;
  Progress bar(fmt::format("epoch {}/{}", epoch + 1, config_.epochs), last, first);
  model_.module().train();
  double wait = 0;
  if (first < last) {
    for (auto [x_here, y_here] : loader_) {
      const Tensor x = x_here.to(device_), y = y_here.to(device_);
      optimizer_->zero_grad();
      Tensor logits, loss;
      {
        Autocast autocast(config_.precision == "f16" ? f16 : bf16, config_.precision != "f32");
        logits = model_(x);
        loss = cross_entropy(logits, y);
      }
      scaler_.scale(loss).backward();
      if (config_.clip_norm > 0) {
        scaler_.unscale_(*optimizer_);
        optim::clip_grad_norm_(model_.module(), config_.clip_norm);
      }
      if (scaler_.step(*optimizer_)) schedule_->step();
      scaler_.update();
      ++step_;
      score_.add(loss, logits, y);
      check<ValueError>(std::isfinite(score_.loss_sum), "the loss is not finite at step", step_,
                        "; a smaller optimizer.lr or clip_norm may help");
      bar.step(y.size(0), score_.loss(), score_.accuracy());
      wait = loader_.waited();
      if (interrupted()) return false;
      if (config_.max_steps > 0 && step_ >= config_.max_steps) break;
      if (step_ % config_.checkpoint_every == 0) save(folder_.last());
    }
  }
  // A run that ends in the middle of an epoch closes it where it is, and so does one that went on
  // behind its last batch.
  loader_.set_epoch(epoch + 1);
  Score val = evaluate(model_, task_.validation, 256, int(config_.data.workers));
  if (interrupted()) {
    loader_.load_state({epoch, last});
    return false;
  }
  check<ValueError>(std::isfinite(val.loss()), "the validation loss is not finite after step",
                    step_, "; a smaller optimizer.lr or clip_norm may help");
  EpochRow row{int64_t(rows_.size()) + 1,
               score_.loss(),
               score_.accuracy(),
               val.loss(),
               val.accuracy(),
               optimizer_->lr(0),
               bar.seconds(),
               wait};
  rows_.push_back(row);
  score_ = {};
  bool better = val.accuracy() > best_accuracy_;
  if (better) best_accuracy_ = val.accuracy();
  if (better) save(folder_.best());
  save(folder_.last());
  folder_.write_log(rows_);
  bar.clear();
  fmt::print(
      "epoch {}/{}: train loss {:.4f} accuracy {:.2f}%, validation loss {:.4f} accuracy {:.2f}%, "
      "{} ({:.1f} s "
      "waiting for data)\n",
      epoch + 1, config_.epochs, row.train_loss, 100 * row.train_accuracy, row.val_loss,
      100 * row.val_accuracy, clock_text(row.seconds), row.loader_wait);
  return true;
}

Trained read_trained(const std::string& path) {
  optim::Progress p = optim::read_progress(path);
  auto found = p.user.find("config");
  check<FileError>(found != p.user.end(), path,
                   ": not a checkpoint of this program (it holds no config)");
  Trained trained;
  trained.config = parse_config(found->second, path);
  validate(trained.config);
  trained.classes = split_lines(p.user["classes"]);
  auto rank = count(p.user, "image_rank");
  check<FileError>(!trained.classes.empty() && rank >= 1 && rank <= 3, path,
                   ": does not say what images it was trained on");
  for (int64_t d = 0; d < rank; ++d)
    trained.image_shape.push_back(count(p.user, "image_size." + std::to_string(d)));
  return trained;
}

}  // namespace tg::app
