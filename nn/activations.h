// Activations and dropout as modules, for Sequential. Inside of a forward the functions of
// autograd/ops/unary.h read better.
#pragma once
#include "tapegrad/autograd/ops/unary.h"
#include "tapegrad/nn/module.h"

namespace tg::nn {

struct ReLU : Module {
  TG_MODULE()
  Tensor forward(const Tensor& x) { return relu(x); }
};
struct SiLU : Module {
  TG_MODULE()
  Tensor forward(const Tensor& x) { return silu(x); }
};
struct Tanh : Module {
  TG_MODULE()
  Tensor forward(const Tensor& x) { return tanh(x); }
};
struct Sigmoid : Module {
  TG_MODULE()
  Tensor forward(const Tensor& x) { return sigmoid(x); }
};
struct GELU : Module {
  Gelu form;
  explicit GELU(Gelu form = Gelu::erf) : form(form) {}
  TG_MODULE()
  Tensor forward(const Tensor& x) { return gelu(x, form); }
  GELU remake() const { return GELU(form); }
};
struct LeakyReLU : Module {
  double negative_slope;
  explicit LeakyReLU(double negative_slope = 0.01) : negative_slope(negative_slope) {}
  TG_MODULE()
  Tensor forward(const Tensor& x) { return leaky_relu(x, negative_slope); }
  LeakyReLU remake() const { return LeakyReLU(negative_slope); }
};
struct Softmax : Module {
  int64_t dim;
  explicit Softmax(int64_t dim) : dim(dim) {}
  TG_MODULE()
  Tensor forward(const Tensor& x);
  Softmax remake() const { return Softmax(dim); }
};

// In training each element becomes 0 with probability p, else x / (1 - p); in eval mode x.
// ValueError unless p is in [0, 1].
struct Dropout : Module {
  double p;
  explicit Dropout(double p = 0.5);
  TG_MODULE()
  Tensor forward(const Tensor& x);
  Dropout remake() const { return Dropout(p); }
};

}  // namespace tg::nn
