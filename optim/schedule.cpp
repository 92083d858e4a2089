#include "tapegrad/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tg::optim {

namespace {

constexpr double kPi = 3.14159265358979323846;

// From base at t = 0 to low at t = 1.
double half_cosine(double t, double base, double low) {
  return low + (base - low) * (1 + std::cos(kPi * t)) / 2;
}

void check_finite(const char* who, const char* what, double value) {
  check<ValueError>(std::isfinite(value), who, what, "must be finite, got", value);
}

}  // namespace

Schedule::Schedule(Optimizer& optimizer) : optimizer_(optimizer) {
  for (size_t i = 0; i < optimizer.group_count(); ++i) bases_.push_back(optimizer.initial_lr(i));
}

Schedule::~Schedule() = default;

void Schedule::step() {
  check<ValueError>(step_ < std::numeric_limits<int64_t>::max(), name(), "has no step behind",
                    step_);
  seek(step_ + 1);
}

double Schedule::rate(int64_t step, double base) const {
  check<ValueError>(step >= 0, name(), "counts steps from 0, got", step);
  return rate_at(step, base);
}

void Schedule::seek(int64_t step) {
  rate(step, 0);  // refuses what is no step before anything changes
  step_ = step;
  // Groups that were added after the schedule was made start from their own rate.
  while (bases_.size() < optimizer_.group_count())
    bases_.push_back(optimizer_.initial_lr(bases_.size()));
  for (size_t i = 0; i < bases_.size(); ++i) optimizer_.lr(i) = rate(step, bases_[i]);
}

State Schedule::state_dict() const {
  State state;
  state.set("schedule", name());
  state.set("step", std::to_string(step_));
  state.set("groups", std::to_string(bases_.size()));
  for (size_t i = 0; i < bases_.size(); ++i)
    state.set("base." + std::to_string(i), to_text(bases_[i]));
  SettingWriter writer(state, "setting.");
  const_cast<Schedule*>(this)->visit_settings(writer);
  return state;
}

void Schedule::check_state_dict(const State& state, bool keep_settings) {
  check<ValueError>(state.text("schedule") == name(), "the saved schedule is a",
                    state.text("schedule"), "and this one a", name());
  check<ValueError>(state.integer("groups") == int64_t(optimizer_.group_count()), name(),
                    "saved for", state.text("groups"), "parameter groups, but the optimizer has",
                    optimizer_.group_count());
  State mine;
  SettingWriter writer(mine, "setting.");
  visit_settings(writer);
  for (const auto& [key, value] : mine.values)
    check<ValueError>(keep_settings || state.text(key) == value, name(), "was saved with",
                      key.substr(8), state.text(key) + ", this one has", value,
                      "; keep_settings = true goes on with the new curve");
  for (size_t i = 0; i < optimizer_.group_count(); ++i) state.number("base." + std::to_string(i));
  check<ValueError>(state.integer("step") >= 0, name(), "was saved at step", state.text("step"));
}

void Schedule::load_state_dict(const State& state, bool keep_settings) {
  check_state_dict(state, keep_settings);
  bases_.clear();
  for (size_t i = 0; i < optimizer_.group_count(); ++i)
    bases_.push_back(state.number("base." + std::to_string(i)));
  seek(state.integer("step"));
}

ConstantLR::ConstantLR(Optimizer& optimizer) : Schedule(optimizer) { start(); }
double ConstantLR::rate_at(int64_t, double base) const { return base; }
void ConstantLR::visit_settings(SettingVisitor&) {}

StepLR::StepLR(Optimizer& optimizer, StepLROptions o) : Schedule(optimizer), options_(o) {
  check<ValueError>(o.step_size > 0, "StepLR: step_size must be at least 1, got", o.step_size);
  check_finite("StepLR:", "gamma", o.gamma);
  start();
}
double StepLR::rate_at(int64_t step, double base) const {
  const int64_t steps_down = step / options_.step_size;
  return base * std::pow(options_.gamma, double(steps_down));
}
void StepLR::visit_settings(SettingVisitor& v) {
  v.integer("step_size", options_.step_size);
  v.number("gamma", options_.gamma);
}

LinearLR::LinearLR(Optimizer& optimizer, LinearLROptions o) : Schedule(optimizer), options_(o) {
  check<ValueError>(o.total_steps > 0, "LinearLR: total_steps must be at least 1, got",
                    o.total_steps);
  check<ValueError>(o.start_factor > 0 && o.start_factor <= 1,
                    "LinearLR: start_factor must be in (0, 1], got", o.start_factor);
  check<ValueError>(o.end_factor >= 0 && o.end_factor <= 1,
                    "LinearLR: end_factor must be in [0, 1], got", o.end_factor);
  start();
}
double LinearLR::rate_at(int64_t step, double base) const {
  const LinearLROptions& o = options_;
  double t = double(std::min(step, o.total_steps)) / double(o.total_steps);
  return base * (o.start_factor + (o.end_factor - o.start_factor) * t);
}
void LinearLR::visit_settings(SettingVisitor& v) {
  v.number("start_factor", options_.start_factor);
  v.number("end_factor", options_.end_factor);
  v.integer("total_steps", options_.total_steps);
}

CosineLR::CosineLR(Optimizer& optimizer, CosineLROptions o) : Schedule(optimizer), options_(o) {
  check<ValueError>(o.total_steps > 0 && o.warmup_steps >= 0 && o.warmup_steps < o.total_steps,
                    "CosineLR: needs total_steps above warmup_steps, got total_steps",
                    o.total_steps, "warmup_steps", o.warmup_steps);
  check_finite("CosineLR:", "min_lr", o.min_lr);
  start();
}
double CosineLR::rate_at(int64_t step, double base) const {
  const CosineLROptions& o = options_;
  if (step < o.warmup_steps) return base * double(step + 1) / double(o.warmup_steps + 1);
  if (step >= o.total_steps) return o.min_lr;
  return half_cosine(double(step - o.warmup_steps) / double(o.total_steps - o.warmup_steps), base,
                     o.min_lr);
}
void CosineLR::visit_settings(SettingVisitor& v) {
  v.integer("total_steps", options_.total_steps);
  v.integer("warmup_steps", options_.warmup_steps);
  v.number("min_lr", options_.min_lr);
}

CosineRestarts::CosineRestarts(Optimizer& optimizer, CosineRestartsOptions o)
    : Schedule(optimizer), options_(o) {
  check<ValueError>(o.first_cycle > 0 && o.factor > 0,
                    "CosineRestarts: first_cycle and factor must be at least 1, got", o.first_cycle,
                    o.factor);
  check_finite("CosineRestarts:", "min_lr", o.min_lr);
  start();
}
double CosineRestarts::rate_at(int64_t step, double base) const {
  int64_t length = options_.first_cycle, position = step;
  if (options_.factor == 1) {
    position = step % length;
  } else {
    while (position >= length) {  // few rounds: cycles grow
      position -= length;
      if (__builtin_mul_overflow(length, options_.factor, &length))
        length = std::numeric_limits<int64_t>::max();  // a cycle without end
    }
  }
  return half_cosine(double(position) / double(length), base, options_.min_lr);
}
void CosineRestarts::visit_settings(SettingVisitor& v) {
  v.integer("first_cycle", options_.first_cycle);
  v.integer("factor", options_.factor);
  v.number("min_lr", options_.min_lr);
}

}  // namespace tg::optim
