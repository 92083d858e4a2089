// Losses as modules: loss(output, target). Contracts in autograd/ops/losses.h; a tensor of weights
// in the options is moved along by neither to() nor a checkpoint, it is an option.
#pragma once
#include "tapegrad/autograd/ops/losses.h"
#include "tapegrad/nn/module.h"

namespace tg::nn {

struct CrossEntropyLoss : Module {
  CrossEntropyOptions options;
  explicit CrossEntropyLoss(CrossEntropyOptions options = {}) : options(std::move(options)) {}
  TG_MODULE()
  Tensor forward(const Tensor& logits, const Tensor& target) {
    return cross_entropy(logits, target, options);
  }
  CrossEntropyLoss remake() const { return CrossEntropyLoss(options); }
};

struct MSELoss : Module {
  Reduction reduction;
  explicit MSELoss(Reduction reduction = Reduction::mean) : reduction(reduction) {}
  TG_MODULE()
  Tensor forward(const Tensor& input, const Tensor& target) {
    return mse_loss(input, target, reduction);
  }
  MSELoss remake() const { return MSELoss(reduction); }
};

struct L1Loss : Module {
  Reduction reduction;
  explicit L1Loss(Reduction reduction = Reduction::mean) : reduction(reduction) {}
  TG_MODULE()
  Tensor forward(const Tensor& input, const Tensor& target) {
    return l1_loss(input, target, reduction);
  }
  L1Loss remake() const { return L1Loss(reduction); }
};

struct BCEWithLogitsLoss : Module {
  BceOptions options;
  explicit BCEWithLogitsLoss(BceOptions options = {}) : options(std::move(options)) {}
  TG_MODULE()
  Tensor forward(const Tensor& logits, const Tensor& target) {
    return binary_cross_entropy_with_logits(logits, target, options);
  }
  BCEWithLogitsLoss remake() const { return BCEWithLogitsLoss(options); }
};

}  // namespace tg::nn
