// What the engine tells the operators while a backward runs.
#pragma once
#include "tapegrad/autograd/node.h"

namespace tg {

// The node whose backward is running on this thread: saved outputs are attached to it.
inline thread_local Edge running_edge{};

}  // namespace tg
