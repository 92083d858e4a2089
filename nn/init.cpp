#include "tapegrad/nn/init.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tapegrad/autograd/grad_mode.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/random.h"

namespace tg::nn::init {

namespace {
constinit thread_local bool skip_init = false;

double fan_of(const Tensor& x, FanMode mode) {
  auto [in, out] = fans(x);
  return double(std::max<int64_t>(mode == FanMode::fan_in ? in : out, 1));
}

// Inverse of the error function: Winitzki's approximation, sharpened by Newton's method with
// derivative 2/sqrt(pi) exp(-y^2) until double precision (each step doubles the digits).
double erf_inverse(double x) {
  if (x <= -1 || x >= 1) return std::copysign(std::numeric_limits<double>::infinity(), x);
  constexpr double kA = 0.147, kPi = 3.14159265358979323846;
  double l = std::log1p(-x * x), t = 2 / (kPi * kA) + l / 2;
  double y = std::copysign(std::sqrt(std::sqrt(t * t - l / kA) - t), x);
  for (int i = 0; i < 4; ++i)
    y -= (std::erf(y) - x) * std::sqrt(kPi) / 2 * std::exp(std::min(y * y, 700.0));
  return y;
}

double normal_cdf(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

}  // namespace

SkipInit::SkipInit() : old_(skip_init) { skip_init = true; }
SkipInit::~SkipInit() { skip_init = old_; }
bool SkipInit::active() { return skip_init; }

double calculate_gain(Nonlinearity nonlinearity, double slope) {
  switch (nonlinearity) {
    case Nonlinearity::tanh:
      return 5.0 / 3;
    case Nonlinearity::relu:
      return std::sqrt(2.0);
    case Nonlinearity::leaky_relu:
      return std::sqrt(2 / (1 + slope * slope));
    case Nonlinearity::selu:
      return 0.75;
    default:
      return 1;
  }
}

std::pair<int64_t, int64_t> fans(const Tensor& weight) {
  check<ShapeError>(weight.dim() >= 2,
                    "fan in and fan out need a weight [out, in, ...] of rank 2 or more, got",
                    weight.shape());
  int64_t kernel = 1;
  for (int i = 2; i < weight.dim(); ++i) kernel *= weight.size(i);
  return {weight.size(1) * kernel, weight.size(0) * kernel};
}

const Tensor& constant_(const Tensor& x, double value) {
  NoGradGuard no_grad;
  if (!skip_init) fill_(x, value);
  return x;
}
const Tensor& zeros_(const Tensor& x) { return constant_(x, 0); }
const Tensor& ones_(const Tensor& x) { return constant_(x, 1); }

const Tensor& uniform_(const Tensor& x, double low, double high) {
  NoGradGuard no_grad;
  if (!skip_init) tg::uniform_(x, low, high);
  return x;
}

const Tensor& normal_(const Tensor& x, double mean, double std) {
  NoGradGuard no_grad;
  if (!skip_init) tg::normal_(x, mean, std);
  return x;
}

const Tensor& trunc_normal_(const Tensor& x, double mean, double std, double low, double high) {
  check<ValueError>(std > 0 && low < high, "trunc_normal_ needs std > 0 and low < high, got std",
                    std, "low", low, "high", high);
  if (skip_init) return x;
  NoGradGuard no_grad;
  // Uniform between the distribution function's values at the cuts, then its inverse.
  double from = 2 * normal_cdf((low - mean) / std) - 1,
         to = 2 * normal_cdf((high - mean) / std) - 1;
  Tensor draw = empty(x.shape(), f64);
  tg::uniform_(draw, from, to);
  double* v = draw.mutable_data<double>();
  for (int64_t i = 0; i < draw.numel(); ++i)
    v[i] = std::clamp(mean + std * std::sqrt(2.0) * erf_inverse(v[i]), low, high);
  copy_(x, draw.to(x.dtype()).to(x.device()));
  return x;
}

const Tensor& xavier_uniform_(const Tensor& x, double gain) {
  auto [in, out] = fans(x);
  double bound = gain * std::sqrt(6.0 / double(std::max<int64_t>(in + out, 1)));
  return init::uniform_(x, -bound, bound);
}

const Tensor& xavier_normal_(const Tensor& x, double gain) {
  auto [in, out] = fans(x);
  return init::normal_(x, 0, gain * std::sqrt(2.0 / double(std::max<int64_t>(in + out, 1))));
}

const Tensor& kaiming_uniform_(const Tensor& x, KaimingOptions o) {
  double bound = calculate_gain(o.nonlinearity, o.a) * std::sqrt(3.0 / fan_of(x, o.mode));
  return init::uniform_(x, -bound, bound);
}

const Tensor& kaiming_normal_(const Tensor& x, KaimingOptions o) {
  return init::normal_(x, 0, calculate_gain(o.nonlinearity, o.a) / std::sqrt(fan_of(x, o.mode)));
}

}  // namespace tg::nn::init
