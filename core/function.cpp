#include "tapegrad/core/function.h"

#include "tapegrad/core/error.h"

namespace tg::detail {

void fail_empty_function() { fail("a function that holds nothing was called"); }

}  // namespace tg::detail
