// Keeps small gradients of f16 alive: the loss is multiplied by a large number before the backward,
// the gradients are divided by it before the step. The number finds itself: gradients that came out
// infinite or NaN make it smaller and skip the step, a long row of good steps makes it larger.
// After Micikevicius et al., "Mixed precision training" (2018); rules and names are PyTorch's.
//
//   optim::GradScaler scaler;
//   for (auto [x, y] : loader) {
//     optimizer.zero_grad();
//     Tensor loss;
//     { Autocast autocast(f16); loss = cross_entropy(model(x), y); }
//     scaler.scale(loss).backward();
//     scaler.unscale_(optimizer);  // for what wants to see true gradients, such as clipping
//     optim::clip_grad_norm_(model, 1.0);
//     if (scaler.step(optimizer)) schedule.step();
//     scaler.update();
//   }
//
// bf16 has the range of f32 and needs no scaler.
#pragma once
#include <vector>

#include "tapegrad/optim/optimizer.h"

namespace tg::optim {

struct GradScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2;        // above 1
  double backoff_factor = 0.5;     // between 0 and 1
  int64_t growth_interval = 2000;  // good updates in a row before the scale grows
  bool enabled = true;             // false: scale() gives the loss itself, step() just steps
};

// One scaler may serve several optimizers: each is unscaled, checked and skipped for itself, and
// update() counts the iteration as good if all of them were.
class GradScaler {
 public:
  explicit GradScaler(GradScalerOptions options = {});  // ValueError for options out of range

  // y * scale, differentiable; in f32 where y is of a 16-bit type, which could not hold it. Better
  // have losses in f32 (Autocast does): the scale itself is the first gradient that flows back.
  Tensor scale(const Tensor& y) const;
  // Divides the gradients of all parameters by the scale and looks for Inf and NaN among them. An
  // error if it was done, or a step taken, since the last update(); DTypeError for f16 gradients,
  // which have lost what the scale was to save: keep the parameters in f32.
  void unscale_(Optimizer& optimizer);
  // unscale_ unless it was done; then the optimizer's step, unless a gradient is Inf or NaN. True
  // if the step was taken: a schedule that counts steps goes on only then. An error without any
  // gradient, the second time before update(), and if gradients were clipped while they were still
  // multiplied by the scale.
  bool step(Optimizer& optimizer);
  // Ends an iteration: a smaller scale if some optimizer found Inf or NaN, a larger one after
  // growth_interval good iterations in a row. An error if no gradients were looked at.
  void update();
  // ... or this scale from now on. ValueError unless it is positive and finite.
  void update(double scale);

  double get_scale() const { return options_.enabled ? scale_ : 1; }
  int64_t growth_tracker() const { return good_; }  // good updates since the scale last changed
  bool is_enabled() const { return options_.enabled; }

  // Scale, count and settings. ValueError for a state that is not one of a scaler.
  State state_dict() const;
  void load_state_dict(const State& state);
  void check_state_dict(const State& state) const;

 private:
  enum class Stage : uint8_t { unscaled, stepped };
  struct Seen {  // an optimizer that was unscaled since the last update
    const Optimizer* optimizer;
    Stage stage;
    bool found_inf;
  };
  Seen* find(const Optimizer& optimizer);
  Seen& look(Optimizer& optimizer);

  GradScalerOptions options_;
  double scale_;
  int64_t good_ = 0;
  std::vector<Seen> seen_;
};

}  // namespace tg::optim
