#pragma once
#include <string>

namespace tg::test {

// Where the built program lies. In a source of its own, as test_folder() is.
std::string program_path();

}  // namespace tg::test
