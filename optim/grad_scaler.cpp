#include "tapegrad/optim/grad_scaler.h"

#include <cmath>

#include "tapegrad/autograd/ops/arithmetic.h"
#include "tapegrad/kernels/optim.h"
#include "tapegrad/optim/gradients.h"

namespace tg::optim {

namespace {

void check_options(const GradScalerOptions& o, double scale) {
  check<ValueError>(std::isfinite(scale) && scale > 0,
                    "GradScaler: the scale must be positive and finite, got", scale);
  check<ValueError>(std::isfinite(o.growth_factor) && o.growth_factor > 1,
                    "GradScaler: growth_factor must be above 1, got", o.growth_factor);
  check<ValueError>(o.backoff_factor > 0 && o.backoff_factor < 1,
                    "GradScaler: backoff_factor must be between 0 and 1, got", o.backoff_factor);
  check<ValueError>(o.growth_interval >= 1, "GradScaler: growth_interval must be at least 1, got",
                    o.growth_interval);
}

GradScalerOptions settings_of(const State& state) {
  GradScalerOptions o;
  o.growth_factor = state.number("growth_factor");
  o.backoff_factor = state.number("backoff_factor");
  o.growth_interval = state.integer("growth_interval");
  return o;
}

}  // namespace

GradScaler::GradScaler(GradScalerOptions options) : options_(options), scale_(options.init_scale) {
  check_options(options_, scale_);
}

Tensor GradScaler::scale(const Tensor& y) const {
  Scope scope("GradScaler::scale");
  check(y.defined(), "the loss is undefined");
  check<DTypeError>(y.is_floating(), "a loss is of a float type, got", y);
  if (!options_.enabled) return y;
  begin_scaled();
  bool narrow = y.dtype() == f16 || y.dtype() == bf16;
  return (narrow ? y.to(f32) : y) * scale_;
}

GradScaler::Seen* GradScaler::find(const Optimizer& optimizer) {
  for (Seen& s : seen_)
    if (s.optimizer == &optimizer) return &s;
  return nullptr;
}

GradScaler::Seen& GradScaler::look(Optimizer& optimizer) {
  std::vector<Tensor> parameters = optimizer.parameters();
  check(!was_clipped_scaled(parameters),
        "the gradients were clipped while they were still multiplied by the scale; call "
        "unscale_(optimizer) before clipping");
  std::vector<Tensor> gradients = gradients_of(parameters);
  check(!gradients.empty(), optimizer.name(),
        "has no gradients to look at; was scale(loss).backward() called?");
  for (const Tensor& g : gradients)
    check<DTypeError>(g.dtype() != f16,
                      "gradients of f16 cannot be unscaled, what was too small is lost already; "
                      "keep the parameters in f32 and cast by Autocast");
  std::vector<MutView> views = write_all(gradients);
  bool finite = true;
  on(gradients[0].device(), [&](auto device) {
    finite = std::isfinite(kernels::largest_magnitude(device, read_all(gradients)));
    kernels::scale(device, views, 1 / scale_);
  });
  return seen_.emplace_back(Seen{&optimizer, Stage::unscaled, !finite});
}

void GradScaler::unscale_(Optimizer& optimizer) {
  if (!options_.enabled) return;
  Scope scope("GradScaler::unscale_");
  if (const Seen* s = find(optimizer)) {
    check(s->stage != Stage::unscaled, optimizer.name(),
          "was unscaled already since the last update()");
    fail(optimizer.name(), "has stepped since the last update(); unscale_ belongs before step");
  }
  look(optimizer);
}

bool GradScaler::step(Optimizer& optimizer) {
  if (!options_.enabled) {
    optimizer.step();
    return true;
  }
  Scope scope("GradScaler::step");
  Seen* s = find(optimizer);
  check(!s || s->stage != Stage::stepped, optimizer.name(),
        "has stepped already since the last update()");
  if (!s) s = &look(optimizer);
  if (!s->found_inf) optimizer.step();
  s->stage = Stage::stepped;
  return !s->found_inf;
}

void GradScaler::update() {
  if (!options_.enabled) return;
  Scope scope("GradScaler::update");
  check(!seen_.empty(), "no optimizer was stepped or unscaled since the last update()");
  bool found_inf = false;
  for (const Seen& s : seen_) found_inf = found_inf || s.found_inf;
  seen_.clear();
  end_scaled();
  if (found_inf) {
    scale_ *= options_.backoff_factor;
    good_ = 0;
  } else if (++good_ == options_.growth_interval) {
    // Not beyond what f32 holds: an infinite scale would find nothing but infinities.
    double larger = scale_ * options_.growth_factor;
    if (larger <= 0x1p127) scale_ = larger;
    good_ = 0;
  }
}

void GradScaler::update(double scale) {
  if (!options_.enabled) return;
  check_options(options_, scale);
  scale_ = scale;
  seen_.clear();
  end_scaled();
}

State GradScaler::state_dict() const {
  State state;
  state.set("scale", to_text(scale_));
  state.set("growth_factor", to_text(options_.growth_factor));
  state.set("backoff_factor", to_text(options_.backoff_factor));
  state.set("growth_interval", std::to_string(options_.growth_interval));
  state.set("growth_tracker", std::to_string(good_));
  return state;
}

void GradScaler::check_state_dict(const State& state) const {
  check_options(settings_of(state), state.number("scale"));
  check<ValueError>(state.integer("growth_tracker") >= 0, "GradScaler: growth_tracker is",
                    state.text("growth_tracker"));
}

void GradScaler::load_state_dict(const State& state) {
  check_state_dict(state);
  GradScalerOptions o = settings_of(state);
  o.init_scale = options_.init_scale;
  o.enabled = options_.enabled;
  options_ = o;
  scale_ = state.number("scale");
  good_ = state.integer("growth_tracker");
  seen_.clear();
}

}  // namespace tg::optim
