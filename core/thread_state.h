// What a thread carries: modes and the stack of who is running. Pool workers take over the
// state of the thread that gave them work.
#pragma once
#include "tapegrad/core/dtype.h"

namespace tg {

class Scope;

struct ThreadState {
  bool grad_mode = true;        // operators record their backward
  bool inference_mode = false;  // outputs can never be recorded again
  bool anomaly_mode = false;    // first NaN or Inf, forward or backward, raises
  bool autocast = false;        // operators cast by their rule
  bool autocast_cache = true;   // keep casts of parameters until the outermost region ends
  DType autocast_dtype = DType::bf16;
  const Scope* scope = nullptr;  // innermost operator or module running on this thread
};

inline constinit thread_local ThreadState thread_state{};

// Sets the whole state for a while; pool workers use it.
class ThreadStateGuard {
 public:
  explicit ThreadStateGuard(const ThreadState& state) : old_(thread_state) { thread_state = state; }
  ~ThreadStateGuard() { thread_state = old_; }
  ThreadStateGuard(const ThreadStateGuard&) = delete;
  ThreadStateGuard& operator=(const ThreadStateGuard&) = delete;

 private:
  ThreadState old_;
};

}  // namespace tg
