// For tests and the program: what the instrumented flavour has counted.
#pragma once
#include <string>

#include "tapegrad/kernels/simt/hooks/counters.h"

namespace tg::simt::hooks {

// The table of kernels/simt/hooks/counters.h, of the kernels whose name holds `part`.
std::string cost_table(const std::string& part = "");
// Moved over the least that would do: 1 is ideal.
double bank_conflicts(const std::string& part);
double scattered(const std::string& part);
void clear_costs();

}  // namespace tg::simt::hooks
