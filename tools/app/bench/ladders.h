// The ladders of the kernel lab, measured.
#pragma once
#include <string>

#include "tapegrad/kernels/lab.h"
#include "tapegrad/tools/app/bench/measure.h"

namespace tg::app {

// What a ladder is measured on: the engine's operator at the size the ladder is made for.
// ValueError for a ladder that has none.
Work main_work(const std::string& ladder);
// That operator by each rung, under the name "lab matmul/row_order".
std::vector<Work> rung_works(const kernels::lab::Ladder& ladder);

}  // namespace tg::app
