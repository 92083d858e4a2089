#include "tapegrad/nn/models/cnn.h"

#include "tapegrad/autograd/ops/dropout.h"
#include "tapegrad/autograd/ops/pooling.h"
#include "tapegrad/autograd/ops/unary.h"
#include "tapegrad/autograd/ops/views.h"

namespace tg::nn {

namespace {
// Two convolutions without padding take 2 off each, the pooling halves.
int64_t side_after_pooling(int64_t size) {
  constexpr int64_t kMost = int64_t(1) << 28;  // 64 squares of such a side still fit 63 bits
  check<ValueError>(size >= 6, "CNN: images must be at least 6 wide and high, got", size);
  check<ValueError>(size <= kMost, "CNN: images can be at most", kMost, "wide and high, got", size);
  return (size - 4) / 2;
}
}  // namespace

CNN::CNN(CNNOptions o)
    : options(o),
      conv1(o.in_channels, 32, 3),
      conv2(32, 64, 3),
      fc1(64 * side_after_pooling(o.image_size) * side_after_pooling(o.image_size), 128),
      fc2(128, o.classes) {}

Tensor CNN::forward(const Tensor& input) {
  Tensor x = relu(conv1(input));
  x = max_pool2d(relu(conv2(x)), 2);
  if (options.dropout) x = dropout(x, 0.25, training_);
  x = relu(fc1(flatten(x, 1)));
  if (options.dropout) x = dropout(x, 0.5, training_);
  return fc2(x);
}

}  // namespace tg::nn
