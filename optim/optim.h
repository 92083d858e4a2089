// Every optimizer and schedule, clipping, the gradient scaler, checkpoints.
#pragma once
#include "tapegrad/optim/adam.h"
#include "tapegrad/optim/checkpoint.h"
#include "tapegrad/optim/clip.h"
#include "tapegrad/optim/grad_scaler.h"
#include "tapegrad/optim/schedule.h"
#include "tapegrad/optim/sgd.h"
