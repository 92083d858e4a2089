#include "tapegrad/nn/activations.h"

#include "tapegrad/autograd/ops/dropout.h"
#include "tapegrad/autograd/ops/softmax.h"

namespace tg::nn {

Tensor Softmax::forward(const Tensor& x) { return softmax(x, dim); }

Dropout::Dropout(double p) : p(p) {
  check<ValueError>(p >= 0 && p <= 1, "Dropout: the probability must be in [0, 1], got", p);
}

Tensor Dropout::forward(const Tensor& x) { return dropout(x, p, training_); }

}  // namespace tg::nn
