// The operators that training spends its time in, at sizes that matter.
#pragma once
#include "tapegrad/tools/app/bench/measure.h"

namespace tg::app {

// Those whose name holds `part`. One more operator is one more line here.
std::vector<Work> operator_works(const std::string& part = "");

}  // namespace tg::app
