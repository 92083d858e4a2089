# Writes OUTPUT, the source that knows the commit of SOURCE, unless it says so already.
cmake_policy(VERSION 3.22)
find_package(Git QUIET)
set(commit "unknown")
if(GIT_FOUND)
  # SOURCE may lie inside somebody else's checkout: only one of its own counts.
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} rev-parse --show-toplevel
                  OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(top STREQUAL SOURCE)
    execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} describe --always --dirty
                    OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(described)
      set(commit ${described})
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT
"#include \"tapegrad/tools/app/code_version.h\"

const char* tg::app::code_commit() { return \"@commit@\"; }
")
