#include "app/program_path.h"

namespace tg::test {

std::string program_path() { return TAPEGRAD_PROGRAM; }

}  // namespace tg::test
