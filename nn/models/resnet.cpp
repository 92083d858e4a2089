#include "tapegrad/nn/models/resnet.h"

#include "tapegrad/autograd/ops/arithmetic.h"
#include "tapegrad/autograd/ops/pooling.h"
#include "tapegrad/autograd/ops/unary.h"
#include "tapegrad/autograd/ops/views.h"
#include "tapegrad/nn/init.h"

namespace tg::nn {

namespace {

// A convolution in front of a batch norm needs no bias.
Conv2d conv(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
  return {in, out, kernel, {.stride = stride, .padding = (kernel - 1) / 2, .bias = false}};
}

std::vector<BasicBlock> two_blocks(int64_t in, int64_t out, int64_t stride) {
  std::vector<BasicBlock> blocks;
  blocks.emplace_back(in, out, stride);
  blocks.emplace_back(out, out);
  return blocks;
}

}  // namespace

BasicBlock::BasicBlock(int64_t in, int64_t out, int64_t stride)
    : conv1(conv(in, out, 3, stride)), bn1(out), conv2(conv(out, out, 3, 1)), bn2(out) {
  if (stride != 1 || in != out) downsample.emplace(conv(in, out, 1, stride), BatchNorm2d(out));
}

BasicBlock BasicBlock::remake() const {
  return {conv1.in_channels, conv1.out_channels, conv1.options.stride.h};
}

Tensor BasicBlock::forward(const Tensor& x) {
  Tensor y = relu(bn1(conv1(x)));
  y = bn2(conv2(y));
  return relu(y + (downsample ? (*downsample)(x) : x));
}

ResNet18::ResNet18(ResNet18Options o)
    : options(o),
      conv1(o.cifar_stem ? conv(o.in_channels, 64, 3, 1) : conv(o.in_channels, 64, 7, 2)),
      bn1(64),
      layer1(two_blocks(64, 64, 1)),
      layer2(two_blocks(64, 128, 2)),
      layer3(two_blocks(128, 256, 2)),
      layer4(two_blocks(256, 512, 2)),
      fc(512, o.classes) {
  apply([](Module& m) {
    if (auto* c = dynamic_cast<Conv2d*>(&m))
      init::kaiming_normal_(
          c->weight, {.mode = init::FanMode::fan_out, .nonlinearity = init::Nonlinearity::relu});
  });
}

Tensor ResNet18::forward(const Tensor& input) {
  Tensor x = relu(bn1(conv1(input)));
  if (!options.cifar_stem) x = max_pool2d(x, 3, {.stride = 2, .padding = 1});
  for (auto* layer : {&layer1, &layer2, &layer3, &layer4})
    for (BasicBlock& block : *layer) x = block(x);
  return fc(flatten(adaptive_avg_pool2d(x, 1), 1));
}

}  // namespace tg::nn
