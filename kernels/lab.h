// The kernel lab: ladders of kernels from the plainest loop up to the engine's own, each rung a
// small file that teaches one idea. Any rung can take the place of the engine's kernel on the CPU:
//
//   lab::use("matmul", "three_loops");           // for the whole process, from the next call on
//   lab::Using slow("matmul", "three_loops");    // the same, until the end of the scope
//
// A rung computes in f32 on the thread that calls it. f16 and bf16 run it as they run the engine's
// kernel, in f32; f64 and integers keep the engine's. kernels/README.md walks through the ladders.
#pragma once
#include <string>
#include <vector>

#include "tapegrad/core/function.h"

namespace tg::kernels::lab {

struct Rung {
  std::string name, idea;
};
struct Ladder {
  std::string name;         // of the kernel
  std::vector<Rung> rungs;  // each faster than the one before; the last is "engine"
};
const std::vector<Ladder>& ladders();
// ValueError that lists what there is, for a name that is none.
const Ladder& ladder(const std::string& name);

void use(const std::string& ladder, const std::string& rung);
// The name of the rung in use.
std::string used(const std::string& ladder);

// A rung in use until the end of the scope; then the one that was before.
class Using {
 public:
  Using(const std::string& ladder, const std::string& rung);
  ~Using() { restore_(); }
  Using(const Using&) = delete;
  Using& operator=(const Using&) = delete;

 private:
  Function<void()> restore_;
};

}  // namespace tg::kernels::lab
