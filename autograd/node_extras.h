// Things few nodes have: hooks, and the module that recorded them.
#pragma once
#include <string>
#include <utility>

#include "tapegrad/autograd/engine.h"
#include "tapegrad/autograd/node.h"

namespace tg {

struct NodeExtras {
  struct OnOutput {
    int output;
    uint64_t id;
    TensorHook hook;
  };
  std::vector<OnOutput> output_hooks;  // run on the summed gradient, before the backward
  std::vector<std::pair<uint64_t, NodeHook>> after;  // run with the gradients it made
  std::string path;  // the module that was running, kept in anomaly mode
};

}  // namespace tg
