#include "tapegrad/nn/linear.h"

#include <cmath>

#include "tapegrad/autograd/ops/matmul.h"
#include "tapegrad/autograd/ops/views.h"
#include "tapegrad/nn/init.h"

namespace tg::nn {

Linear::Linear(int64_t in, int64_t out, LinearOptions options)
    : in_features(in), out_features(out) {
  check<ValueError>(in > 0 && out > 0, "Linear: features must be at least 1, got", in, "in and",
                    out, "out");
  weight = empty({out, in});
  if (options.bias) bias = empty({out});
  reset_parameters();
}

void Linear::reset_parameters() {
  init::kaiming_uniform_(weight, {.a = std::sqrt(5.0)});
  double bound = 1 / std::sqrt(double(in_features));
  if (bias.defined()) init::uniform_(bias, -bound, bound);
}

Tensor Linear::forward(const Tensor& x) { return linear(x, weight, bias); }

Linear Linear::remake() const { return {in_features, out_features, {.bias = bias.defined()}}; }

int64_t Linear::flops(const std::vector<Tensor>&, const Tensor& output) const {
  return output.numel() * (2 * in_features + (bias.defined() ? 1 : 0));
}

Tensor Identity::forward(const Tensor& x) {
  check(x.defined(), "the input is undefined");
  return x;
}
Tensor Flatten::forward(const Tensor& x) { return flatten(x, options.start_dim, options.end_dim); }

}  // namespace tg::nn
