// What a training run is told: a YAML file and key=value words on the command line.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tg::app {

struct TrainConfig {
  std::string run = "run";
  std::string outputs = "outputs";
  int64_t seed = 1;
  std::string device = "cpu";
  std::string precision = "f32";
  int64_t threads = 0;
  int64_t epochs = 1;
  int64_t max_steps = 0;
  int64_t checkpoint_every = 200;
  double clip_norm = 0;

  struct {
    std::string name = "fashion_mnist";
    std::string folder;
    int64_t batch_size = 64;
    int64_t workers = 1;
    int64_t validation = 5000;
    int64_t train_samples = 0;
    bool augment = false;
    int64_t image_size = 32;
  } data;

  struct {
    std::string name = "cnn";
    bool dropout = false;
    std::string hidden = "128";
  } model;

  struct {
    std::string name = "adamw";
    double lr = 0.001;
    double momentum = 0.9;
    double weight_decay = 0.01;
  } optimizer;

  struct {
    std::string name = "cosine";
    int64_t warmup = 100;
  } schedule;
};

// Every key with its field and a word of explanation: the one list of them.
template <class Config, class Visitor>
void for_each_key(Config& c, Visitor&& visit) {
  visit("run", c.run, "name of the folder below outputs");
  visit("outputs", c.outputs, "folder of all runs");
  visit("seed", c.seed, "of weights, order, augmentation and dropout");
  visit("device", c.device, "cpu, or cuda:0 in a build that has it");
  visit("precision", c.precision, "f32, bf16 or f16: of products while training; weights stay f32");
  visit("threads", c.threads, "0: all cores");
  visit("epochs", c.epochs, "passes over the training set");
  visit("max_steps", c.max_steps, "end after so many batches; 0: no limit");
  visit("checkpoint_every", c.checkpoint_every, "batches between two saves of last.safetensors");
  visit("clip_norm", c.clip_norm, "largest norm of the gradient; 0: no limit");
  visit("data.name", c.data.name, "fashion_mnist, image_folder or spirals");
  visit("data.folder", c.data.folder, "where it lies; empty: where the package puts it");
  visit("data.batch_size", c.data.batch_size, "images per step");
  visit("data.workers", c.data.workers, "threads that load; changes no result");
  visit("data.validation", c.data.validation, "training images held back for validation");
  visit("data.train_samples", c.data.train_samples, "use only the first so many; 0: all");
  visit("data.augment", c.data.augment, "random crops and flips");
  visit("data.image_size", c.data.image_size, "images of a folder are resized to this square");
  visit("model.name", c.model.name, "mlp, cnn or resnet18");
  visit("model.dropout", c.model.dropout, "mlp and cnn: drop activations while training");
  visit("model.hidden", c.model.hidden, "mlp: sizes of the hidden layers, as 256,128");
  visit("optimizer.name", c.optimizer.name, "sgd, adam or adamw");
  visit("optimizer.lr", c.optimizer.lr, "largest learning rate");
  visit("optimizer.momentum", c.optimizer.momentum, "sgd only");
  visit("optimizer.weight_decay", c.optimizer.weight_decay, "towards zero, per step and lr");
  visit("schedule.name", c.schedule.name, "cosine or constant");
  visit("schedule.warmup", c.schedule.warmup,
        "cosine only: steps of linear warmup, less than the run has");
}

// Reads the file (may be "") and then the overrides. ValueError or FileError that names the file,
// the key and the nearest known key.
TrainConfig load_config(const std::string& path, const std::vector<std::string>& overrides);
// From text in the same format, e.g. out of a checkpoint; `source` is named in errors.
TrainConfig parse_config(const std::string& yaml, const std::string& source);
// Sets key=value words on top of a config, and validates it.
void apply_overrides(TrainConfig& config, const std::vector<std::string>& overrides);
std::string to_yaml(const TrainConfig& config);
// "epochs is 3, not 5, ...": the keys in which two configs differ, with the values of `counts` and
// of `other`; "" if there are none beside those of `except`.
std::string differences(const TrainConfig& counts, const TrainConfig& other,
                        const std::vector<std::string>& except);
// Checks what can be checked without data: names, ranges. ValueError.
void validate(const TrainConfig& config);
bool is_utf8(const std::string& text);
// The known word nearest to `word` by edit distance; "" if none is near.
std::string nearest(const std::string& word, const std::vector<std::string>& known);

}  // namespace tg::app
