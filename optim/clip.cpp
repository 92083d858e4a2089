#include "tapegrad/optim/clip.h"

#include <algorithm>
#include <cmath>

#include "tapegrad/core/scope.h"
#include "tapegrad/kernels/optim.h"
#include "tapegrad/optim/gradients.h"

namespace tg::optim {

namespace {

double norm_of(const std::vector<Tensor>& gradients, double norm_type) {
  check<ValueError>(norm_type > 0, "the norm's type must be positive, got", norm_type);
  if (gradients.empty()) return 0;
  std::vector<View> views = read_all(gradients);
  double norm = 0;
  on(gradients[0].device(), [&](auto device) {
    if (std::isinf(norm_type))
      norm = kernels::largest_magnitude(device, views);
    else
      norm = std::pow(kernels::sum_of_powers(device, views, norm_type), 1 / norm_type);
  });
  return norm;
}

void scale_all(const std::vector<Tensor>& gradients, double factor) {
  if (gradients.empty()) return;
  std::vector<MutView> views = write_all(gradients);
  on(gradients[0].device(), [&](auto device) { kernels::scale(device, views, factor); });
}

}  // namespace

double total_norm(const std::vector<Tensor>& parameters, double norm_type) {
  return norm_of(gradients_of(parameters), norm_type);
}

double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, ClipOptions o) {
  Scope scope("clip_grad_norm_");
  check<ValueError>(max_norm >= 0, "the largest norm must not be negative, got", max_norm);
  note_clipped(parameters);
  std::vector<Tensor> gradients = gradients_of(parameters);
  double norm = norm_of(gradients, o.norm_type);
  check<ValueError>(!o.error_if_nonfinite || std::isfinite(norm), "the norm of the gradients is",
                    norm, "; explain_grad names the parameters");
  double factor = max_norm / (norm + 1e-6);
  if (!(factor >= 1)) scale_all(gradients, factor);
  return norm;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double value) {
  Scope scope("clip_grad_value_");
  check<ValueError>(value >= 0, "the largest value must not be negative, got", value);
  note_clipped(parameters);
  std::vector<Tensor> gradients = gradients_of(parameters);
  if (gradients.empty()) return;
  std::vector<MutView> views = write_all(gradients);
  on(gradients[0].device(), [&](auto device) { kernels::limit(device, views, value); });
}

}  // namespace tg::optim
