// Every model.
#pragma once
#include "tapegrad/nn/models/cnn.h"
#include "tapegrad/nn/models/gpt.h"
#include "tapegrad/nn/models/mlp.h"
#include "tapegrad/nn/models/resnet.h"
