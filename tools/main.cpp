// The tapegrad program. This file is compiled for any CPU of its family (see CMakeLists.txt): it
// asks whether this one can run the others, and says what is missing instead of dying of it.
#include <cstdio>
#include <cstdlib>

#include "tapegrad/core/cpu_features.h"
#include "tapegrad/tools/app/commands.h"

namespace {

// Before main, because what other files set up at the start is compiled for the machine of the
// build too.
[[gnu::constructor(101)]] void refuse_a_lesser_cpu() {
  if (const char* missing = tg::missing_cpu_feature()) {
    std::fprintf(
        stderr,
        "tapegrad: this CPU lacks %s, for which the program was compiled; build it on this "
        "machine, or with -DTAPEGRAD_ARCH=none\n",
        missing);
    std::_Exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) { return tg::app::run_program(argc, argv); }
