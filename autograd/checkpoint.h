// Gradient checkpointing: trading a second forward for memory.
#pragma once
#include <vector>

#include "tapegrad/core/function.h"
#include "tapegrad/core/tensor.h"

namespace tg {

// fn(inputs), of which only the inputs are kept: the backward runs fn again, with the same random
// numbers and under the same autocast, and goes on from there. Parameters that fn uses get their
// gradients as usual. fn must do the same each time. Only for backward(): inside tg::grad and with
// create_graph it raises.
std::vector<Tensor> checkpoint(const Function<std::vector<Tensor>(const std::vector<Tensor>&)>& fn,
                               const std::vector<Tensor>& inputs);
Tensor checkpoint(const Function<Tensor(const Tensor&)>& fn, const Tensor& input);

}  // namespace tg
