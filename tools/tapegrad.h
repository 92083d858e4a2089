// Everything a model and its training need, in one include: tensors, operators, modules, optimizers
// and data.
#pragma once

#include "tapegrad/autograd/checkpoint.h"
#include "tapegrad/autograd/engine.h"
#include "tapegrad/autograd/explain.h"
#include "tapegrad/autograd/functional.h"
#include "tapegrad/autograd/grad_mode.h"
#include "tapegrad/autograd/ops.h"
#include "tapegrad/core/error.h"
#include "tapegrad/core/io/npy.h"
#include "tapegrad/core/io/safetensors.h"
#include "tapegrad/core/memory.h"
#include "tapegrad/core/parallel.h"
#include "tapegrad/core/random.h"
#include "tapegrad/core/tensor.h"
#include "tapegrad/data/dataset.h"
#include "tapegrad/data/idx.h"
#include "tapegrad/data/loader.h"
#include "tapegrad/nn/nn.h"
#include "tapegrad/optim/optim.h"
