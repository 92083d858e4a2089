#include "test_folder.h"

namespace tg::test {

std::string test_folder() { return TAPEGRAD_TEST_DIR; }

}  // namespace tg::test
