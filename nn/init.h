// Initial values of weights, with PyTorch's names, formulas and defaults. All write in place
// without being recorded, return x, and draw from the default generator of x's device.
#pragma once
#include <utility>

#include "tapegrad/core/tensor.h"

namespace tg::nn::init {

enum class FanMode { fan_in, fan_out };
// What follows the layer; decides the gain of the Kaiming formulas.
enum class Nonlinearity { linear, sigmoid, tanh, relu, leaky_relu, selu };

// linear, sigmoid: 1; tanh: 5/3; relu: sqrt(2); leaky_relu: sqrt(2 / (1 + slope^2)); selu: 3/4.
double calculate_gain(Nonlinearity nonlinearity, double slope = 0.01);
// {fan in, fan out} of a weight [out, in, kernel...]: the numbers that feed one output and that
// one input feeds. ShapeError below rank 2.
std::pair<int64_t, int64_t> fans(const Tensor& weight);

const Tensor& constant_(const Tensor& x, double value);
const Tensor& zeros_(const Tensor& x);
const Tensor& ones_(const Tensor& x);
const Tensor& uniform_(const Tensor& x, double low = 0, double high = 1);
const Tensor& normal_(const Tensor& x, double mean = 0, double std = 1);
// A normal distribution cut at [low, high], by inverting its distribution function.
const Tensor& trunc_normal_(const Tensor& x, double mean = 0, double std = 1, double low = -2,
                            double high = 2);
// uniform in +- gain sqrt(6 / (fan in + fan out)); normal with gain sqrt(2 / (fan in + fan out)).
const Tensor& xavier_uniform_(const Tensor& x, double gain = 1);
const Tensor& xavier_normal_(const Tensor& x, double gain = 1);

struct KaimingOptions {
  double a = 0;  // slope of leaky_relu
  FanMode mode = FanMode::fan_in;
  Nonlinearity nonlinearity = Nonlinearity::leaky_relu;
};
// uniform in +- gain sqrt(3 / fan); normal with gain / sqrt(fan).
const Tensor& kaiming_uniform_(const Tensor& x, KaimingOptions options = {});
const Tensor& kaiming_normal_(const Tensor& x, KaimingOptions options = {});

// Inside, new layers leave their weights as memory came: nothing is drawn. For models that are
// filled from a file or from another model right after.
class SkipInit {
 public:
  SkipInit();
  ~SkipInit();
  SkipInit(const SkipInit&) = delete;
  SkipInit& operator=(const SkipInit&) = delete;
  static bool active();

 private:
  bool old_;
};

}  // namespace tg::nn::init
