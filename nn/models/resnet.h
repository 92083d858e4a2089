// Residual networks (He et al. 2015): ResNet-18.
#pragma once
#include "tapegrad/nn/conv.h"
#include "tapegrad/nn/linear.h"
#include "tapegrad/nn/normalization.h"
#include "tapegrad/nn/sequential.h"

namespace tg::nn {

// relu(x + bn2(conv2(relu(bn1(conv1(x)))))); x goes through `downsample` where the shape changes.
struct BasicBlock : Module {
  Conv2d conv1;
  BatchNorm2d bn1;
  Conv2d conv2;
  BatchNorm2d bn2;
  std::optional<Sequential> downsample;
  BasicBlock(int64_t in_channels, int64_t out_channels, int64_t stride = 1);
  TG_MODULE(conv1, bn1, conv2, bn2, downsample)
  Tensor forward(const Tensor& x);
  BasicBlock remake() const;
};

struct ResNet18Options {
  int64_t classes = 10;
  int64_t in_channels = 3;
  // For images of 32 pixels: a 3x3 convolution of stride 1 at the start and no pooling, instead
  // of 7x7 with stride 2 and max pooling.
  bool cifar_stem = true;
};

// x [N,in_channels,H,W] -> [N,classes]. Names are torchvision's: layer2.0.downsample.0.weight.
// Convolutions start Kaiming-normal (fan out, relu).
struct ResNet18 : Module {
  ResNet18Options options;
  Conv2d conv1;
  BatchNorm2d bn1;
  std::vector<BasicBlock> layer1, layer2, layer3, layer4;
  Linear fc;
  explicit ResNet18(ResNet18Options options = {});
  TG_MODULE(conv1, bn1, layer1, layer2, layer3, layer4, fc)
  Tensor forward(const Tensor& x);
  ResNet18 remake() const { return ResNet18(options); }
};

}  // namespace tg::nn
