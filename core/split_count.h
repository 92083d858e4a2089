// How often work was cut into pieces: a test of thread counts means nothing where nothing was cut.
#pragma once
#include <cstdint>

namespace tg {

// Since the process began, over all threads. Nested work, which runs on one thread, is not counted.
struct SplitCount {
  int64_t jobs = 0;    // calls of parallel_for and parallel_reduce that made more than one piece
  int64_t pieces = 0;  // the pieces of those jobs: any thread of the pool may take one
};
SplitCount split_count();

}  // namespace tg
