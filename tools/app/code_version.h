// Which commit of the source the program was built from.
#pragma once

namespace tg::app {

// As `git describe --always --dirty` has it; "unknown" for a source that is no git checkout.
const char* code_commit();

}  // namespace tg::app
