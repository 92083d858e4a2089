// Training steps that are measured: forward, loss, backward, optimizer on fixed random data.
#pragma once
#include <string>
#include <vector>

#include "tapegrad/core/function.h"

namespace tg::bench {

struct Step {
  std::string name;
  double flops;  // of one step, multiplications and additions counted apart
  // Builds model, data and optimizer; the result runs one step and returns the loss.
  Function<Function<double()>()> make;
};
// mlp: 784-128-10, batch 64, SGD. cnn: 2 convolutions, batch 64 of 28 x 28, Adam. resnet: ResNet-18
// with CIFAR stem, batch 32, SGD with momentum. gpt: 4 layers, width 256, 8 heads, 8 x 128 tokens,
// AdamW.
const std::vector<Step>& steps();

}  // namespace tg::bench
