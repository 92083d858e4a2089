// Learning rates as functions of the step. Every schedule is a closed form: the rate at step t
// depends on t and the settings alone, so a resumed run goes on exactly where it stopped.
#pragma once
#include "tapegrad/optim/optimizer.h"

namespace tg::optim {

// Sets the rate of every group of an optimizer, from that group's initial rate. Call step() after
// the optimizer's step(). The optimizer must outlive it.
class Schedule {
 public:
  virtual ~Schedule();
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  void step();
  // Goes to a step, forward or back. ValueError below 0.
  void seek(int64_t step);
  int64_t step_count() const { return step_; }
  // The rate at some step of a group that starts from `base`. ValueError for a step below 0.
  double rate(int64_t step, double base) const;
  virtual const char* name() const = 0;

  State state_dict() const;
  // Goes to the saved step and base rates and sets the rates in the optimizer, whichever of the
  // two is loaded first. ValueError if the saved schedule is of another kind or has other
  // settings, naming them: a curve that is stretched in silence is a fault. With
  // keep_settings the new settings count, from the saved step on.
  void load_state_dict(const State& state, bool keep_settings = false);
  // The checks of load_state_dict alone.
  void check_state_dict(const State& state, bool keep_settings = false);

 protected:
  explicit Schedule(Optimizer& optimizer);
  // To be called at the end of the constructor: sets the rates of step 0.
  void start() { seek(0); }
  virtual double rate_at(int64_t step, double base) const = 0;  // step >= 0
  virtual void visit_settings(SettingVisitor& visitor) = 0;

 private:
  Optimizer& optimizer_;
  std::vector<double> bases_;  // by group
  int64_t step_ = 0;
};

// The same rate always.
class ConstantLR final : public Schedule {
 public:
  explicit ConstantLR(Optimizer& optimizer);
  const char* name() const override { return "ConstantLR"; }

 protected:
  double rate_at(int64_t step, double base) const override;
  void visit_settings(SettingVisitor& visitor) override;
};

struct StepLROptions {
  int64_t step_size = 30;
  double gamma = 0.1;
};
// base gamma^(step / step_size), rounded down.
class StepLR final : public Schedule {
 public:
  StepLR(Optimizer& optimizer, StepLROptions options);
  const char* name() const override { return "StepLR"; }

 protected:
  double rate_at(int64_t step, double base) const override;
  void visit_settings(SettingVisitor& visitor) override;

 private:
  StepLROptions options_;
};

struct LinearLROptions {
  double start_factor = 1.0 / 3;  // in (0, 1]
  double end_factor = 1;          // in [0, 1]
  int64_t total_steps = 5;
};
// From base start_factor to base end_factor in total_steps, and there it stays.
class LinearLR final : public Schedule {
 public:
  LinearLR(Optimizer& optimizer, LinearLROptions options);
  const char* name() const override { return "LinearLR"; }

 protected:
  double rate_at(int64_t step, double base) const override;
  void visit_settings(SettingVisitor& visitor) override;

 private:
  LinearLROptions options_;
};

struct CosineLROptions {
  int64_t total_steps = 0;   // with the warmup; must be set
  int64_t warmup_steps = 0;  // less than total_steps
  double min_lr = 0;
};
// Warmup: base (step + 1) / (warmup + 1), so that no step is wasted on a rate of 0. Then half a
// cosine, min + (base - min) (1 + cos(pi t)) / 2 with t from 0 at the end of the warmup to 1 at
// total_steps. Beyond it stays at min_lr (PyTorch's CosineAnnealingLR would rise again).
class CosineLR final : public Schedule {
 public:
  CosineLR(Optimizer& optimizer, CosineLROptions options);
  const char* name() const override { return "CosineLR"; }

 protected:
  double rate_at(int64_t step, double base) const override;
  void visit_settings(SettingVisitor& visitor) override;

 private:
  CosineLROptions options_;
};

struct CosineRestartsOptions {
  int64_t first_cycle = 10;  // steps (PyTorch: T_0)
  int64_t factor = 1;        // of a cycle's length to the one before (PyTorch: T_mult)
  double min_lr = 0;
};
// Half a cosine per cycle, starting from base again (Loshchilov and Hutter 2016).
class CosineRestarts final : public Schedule {
 public:
  CosineRestarts(Optimizer& optimizer, CosineRestartsOptions options = {});
  const char* name() const override { return "CosineRestarts"; }

 protected:
  double rate_at(int64_t step, double base) const override;
  void visit_settings(SettingVisitor& visitor) override;

 private:
  CosineRestartsOptions options_;
};

}  // namespace tg::optim
