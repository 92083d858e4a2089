// What an error says.
#pragma once
#include <string>

#include "tapegrad/core/error.h"

namespace tg::test {

// The text of the error of kind E that the call must raise; "" if it raises none.
template <class E = Error, class F>
std::string error_text(F&& call) {
  try {
    call();
  } catch (const E& e) {
    return e.what();
  }
  return "";
}

}  // namespace tg::test
