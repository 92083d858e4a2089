// Sequences: element i is a function of i alone.
#pragma once
#include "tapegrad/core/scalar.h"
#include "tapegrad/kernels/dispatch.h"

namespace tg::kernels {

// y[i] = start + i * step, in int64 for integer dtypes, else in f64 rounded once. y has rank 1.
void arange(Cpu, MutView y, Scalar start, Scalar step);
void arange(Cuda, MutView y, Scalar start, Scalar step);
// From start to end, both included; the second half is counted back from end, so that the last
// element is end itself. y has rank 1.
void linspace(Cpu, MutView y, double start, double end);
void linspace(Cuda, MutView y, double start, double end);

}  // namespace tg::kernels
