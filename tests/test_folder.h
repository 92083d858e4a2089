#pragma once
#include <string>

namespace tg::test {

// The tests' source folder, for stored references and files. In a source of its own, so that
// objects of the other tests do not depend on where the tree lies.
std::string test_folder();

}  // namespace tg::test
