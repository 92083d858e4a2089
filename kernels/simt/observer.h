// Who wants to see what a block does: the instrumented flavour. Without one this costs a test of a
// pointer at each barrier.
#pragma once
#include "tapegrad/kernels/simt/engine.h"

namespace tg::simt {

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void launch_begins(const Launch& launch) = 0;
  virtual void block_begins(unsigned threads) = 0;
  // All threads of the block have met: what was written before is seen by all.
  virtual void block_met() = 0;
  // The lanes of a warp have met in __syncwarp. Shuffles and votes order no memory.
  virtual void warp_met(unsigned warp) = 0;
  virtual void block_ends() = 0;
  // A copy beside the arithmetic may write from when it was asked for until it was waited for.
  virtual void copy_writes(const void* shared, int bytes) = 0;
};

// Null: nobody. Set before kernels run, and then blocks must not run on several threads.
Observer*& observer();

// The thread of the running block whose code runs now; false in the engine and outside of kernels.
bool in_kernel(unsigned& thread);
// True if the address lies on the stack of that thread: nobody else's business.
bool on_own_stack(const void* address);

}  // namespace tg::simt
