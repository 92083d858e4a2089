// The gradients of a list of parameters, as clipping and the scaler write them. Private to optim.
#pragma once
#include <vector>

#include "tapegrad/core/tensor.h"

namespace tg::optim {

// The gradients there are, each once, with dense memory. An expanded gradient is replaced by a
// copy, on the parameter too, so that it can be written.
std::vector<Tensor> gradients_of(const std::vector<Tensor>& parameters);
std::vector<View> read_all(const std::vector<Tensor>& gradients);
std::vector<MutView> write_all(const std::vector<Tensor>& gradients);

// Clipping a gradient that is still multiplied by a scaler's number cuts it far too short, so from
// GradScaler::scale to update() clipping tells whose gradients it has seen. Kept for each thread.
void begin_scaled();
void end_scaled();
void note_clipped(const std::vector<Tensor>& parameters);
bool was_clipped_scaled(const std::vector<Tensor>& parameters);

}  // namespace tg::optim
