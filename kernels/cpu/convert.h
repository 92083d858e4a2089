// Contiguous runs of elements from one dtype to another, and from strided memory and back.
#pragma once
#include <cstdint>

#include "tapegrad/core/dtype.h"

namespace tg::kernels {

// to[i] = from[i], i < n, by the rules of kernels/copy.h.
using ConvertRun = void (*)(const void* from, void* to, int64_t n);
ConvertRun convert_run(DType from, DType to);

// n elements of `bytes` bytes each that lie `step` bytes apart, next to each other at `to`
// (step 0 repeats one element); and the way back.
void gather_run(const char* from, int64_t step, char* to, int64_t n, int64_t bytes);
void scatter_run(const char* from, char* to, int64_t step, int64_t n, int64_t bytes);

}  // namespace tg::kernels
