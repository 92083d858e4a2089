// One file that holds a run: model, optimizer, schedule, generators, where the run stands, and
// what the user adds. It is a safetensors file, so the weights can be read by anybody.
//
//   save_checkpoint("last.safetensors", {.model = &model, .optimizer = &opt}, {.epoch = 3});
//   Progress at = load_checkpoint("last.safetensors", {.model = &model, .optimizer = &opt});
//
// Layout: tensors "model.<name>" (a tied weight once) and "optimizer.<parameter>.<what>";
// everything else is text in the file's metadata under "optimizer.", "schedule.", "scaler.",
// "generator.", "progress." and "user."; "checksum" tells a damaged file, which is refused.
#pragma once
#include <map>
#include <string>

#include "tapegrad/core/random.h"
#include "tapegrad/nn/module.h"
#include "tapegrad/optim/grad_scaler.h"
#include "tapegrad/optim/optimizer.h"
#include "tapegrad/optim/schedule.h"

namespace tg::optim {

// What is saved or loaded; what is left out is not.
struct CheckpointParts {
  nn::Module* model = nullptr;
  Optimizer* optimizer = nullptr;
  Schedule* schedule = nullptr;
  // By name. For a run that is to go on bit by bit: {{"default", &default_generator()}}.
  std::vector<std::pair<std::string, Generator*>> generators = {};
  GradScaler* scaler = nullptr;
};

// Where a run stands.
struct Progress {
  int64_t epoch = 0;
  int64_t step = 0;      // optimizer steps in all
  int64_t position = 0;  // samples (or batches, as the user counts) done in this epoch
  std::map<std::string, std::string> user = {};  // anything, by name
};

// The file appears whole or not at all. FileError with the system's reason.
void save_checkpoint(const std::string& path, const CheckpointParts& parts,
                     const Progress& progress = {});

struct LoadCheckpointOptions {
  bool keep_schedule_settings = false;  // as Schedule::load_state_dict's
};

// All parts are checked before any of them changes; an error of one line names the file and what
// differs: another model, optimizer or schedule, or a part that the file does not hold.
Progress load_checkpoint(const std::string& path, const CheckpointParts& parts,
                         LoadCheckpointOptions options = {});

// The position and the user's values alone; nothing is loaded, but the whole file is checked.
Progress read_progress(const std::string& path);

}  // namespace tg::optim
