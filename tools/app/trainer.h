// One training run: data, model, optimizer, schedule, log and checkpoints.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tapegrad/data/loader.h"
#include "tapegrad/optim/checkpoint.h"
#include "tapegrad/optim/grad_scaler.h"
#include "tapegrad/optim/optimizer.h"
#include "tapegrad/optim/schedule.h"
#include "tapegrad/tools/app/run_folder.h"
#include "tapegrad/tools/app/task.h"

namespace tg::app {

// Weighted by the samples of each batch, so that a smaller last batch counts for what it is.
struct Score {
  double loss_sum = 0;
  int64_t correct = 0, count = 0;
  void add(const Tensor& loss, const Tensor& logits, const Tensor& labels);
  double loss() const { return count ? loss_sum / double(count) : 0; }
  double accuracy() const { return count ? double(correct) / double(count) : 0; }
};

// Loss and accuracy of the model, in eval mode and without recording.
Score evaluate(Model& model, const std::shared_ptr<const Images>& images, int64_t batch_size,
               int workers);

class Trainer {
 public:
  explicit Trainer(TrainConfig config);
  // Starts afresh in outputs/<run>. `command`: the words of the command line, for run.json.
  void start(const std::vector<std::string>& command);
  // Goes on from outputs/<run>/last.safetensors.
  void resume(const std::vector<std::string>& command);
  // Trains to the end, prints as it goes; false if it was interrupted (state saved).
  bool run();

 private:
  optim::CheckpointParts parts();
  void save(const std::string& path);
  bool run_epoch();
  bool finished() const;
  std::string resume_hint() const;

  TrainConfig config_;
  Device device_;
  RunFolder folder_;
  std::string program_ = "tapegrad";  // as it was called, for hints
  Task task_;
  Model model_;
  data::DataLoader<data::ImageAndLabel> loader_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<optim::Schedule> schedule_;
  optim::GradScaler scaler_;  // works in f16 only
  // What a checkpoint holds besides model, optimizer and schedule.
  int64_t step_ = 0;
  Score score_;  // of the epoch so far
  double best_accuracy_ = -1;
  std::vector<EpochRow> rows_;
};

// What a checkpoint says of the training beside the weights.
struct Trained {
  TrainConfig config;
  Shape image_shape;                 // [C,H,W]
  std::vector<std::string> classes;  // by label
};
Trained read_trained(const std::string& path);

}  // namespace tg::app
