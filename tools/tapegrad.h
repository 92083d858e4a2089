// Everything a model and its training need, in one include: tensors, operators, modules, optimizers
// and data.
#pragma once

#include "tapegrad/autograd/engine.h"
#include "tapegrad/autograd/grad_mode.h"
#include "tapegrad/autograd/ops.h"
#include "tapegrad/core/error.h"
#include "tapegrad/core/memory.h"
#include "tapegrad/core/tensor.h"
