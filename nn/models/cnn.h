// A small convolutional network for images of one size.
#pragma once
#include "tapegrad/nn/conv.h"
#include "tapegrad/nn/linear.h"

namespace tg::nn {

struct CNNOptions {
  int64_t in_channels = 1;
  int64_t image_size = 28;
  int64_t classes = 10;
  bool dropout = false;  // 0.25 after the pooling, 0.5 after fc1
};

// conv 3x3 to 32, relu, conv 3x3 to 64, relu, max pool 2, linear to 128, relu, linear to classes.
// x [N,in_channels,size,size] -> [N,classes]. Names: conv1, conv2, fc1, fc2.
struct CNN : Module {
  CNNOptions options;
  Conv2d conv1, conv2;
  Linear fc1, fc2;
  explicit CNN(CNNOptions options = {});
  TG_MODULE(conv1, conv2, fc1, fc2)
  Tensor forward(const Tensor& x);
  CNN remake() const { return CNN(options); }
};

}  // namespace tg::nn
