// Where the tape ends: the node of a tensor that the user made and asked the gradient of.
#pragma once
#include <mutex>

#include "tapegrad/autograd/node.h"

namespace tg {

// Holds the gradient of a leaf. It does not hold the leaf itself.
struct LeafNode final : Node {
  std::mutex mutex;  // two backwards may meet here
  Tensor grad;
  Grads backward(std::span<const Tensor>, Needs) override { return {}; }
  bool is_leaf_node() const override { return true; }
};

}  // namespace tg
