// What the engine tells the operators while a backward runs.
#pragma once
#include "tapegrad/autograd/node.h"

namespace tg {

// The node whose backward is running on this thread: saved outputs are attached to it.
inline thread_local Edge running_edge{};
// The backward that runs serves tg::grad: gradients are returned, leaves are left alone.
inline constinit thread_local bool running_aimed = false;

}  // namespace tg
