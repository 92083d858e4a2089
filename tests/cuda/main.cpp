// Without a device every test is skipped, which ctest counts (77).
#define CATCH_CONFIG_RUNNER
#include <cstdio>
#include <cstring>

#include "catch.h"
#include "tapegrad/core/cuda/cuda.h"
#ifdef TAPEGRAD_WATCHED
#include "tapegrad/kernels/simt/hooks/hooks.h"
#endif

int main(int argc, char** argv) {
  bool lists = false;
  for (int i = 1; i < argc; ++i) lists = lists || std::strstr(argv[i], "--list") == argv[i];
  if (!lists && tg::cuda_device_count() == 0) {
    std::printf("SKIPPED: %s\n", tg::cuda_status().c_str());
    return 77;
  }
#ifdef TAPEGRAD_WATCHED
  tg::simt::hooks::start();
#endif
  return Catch::Session().run(argc, argv);
}
