// A flow of control with a stack of its own, left and entered by hand. Every thread of a block is
// one: a thread that waits at a barrier is simply not entered again before the others have arrived.
#pragma once
#include <boost/context/fiber.hpp>
#include <cstddef>

namespace tg::simt {

class Fiber {
 public:
  using Body = void (*)(Fiber& self, void* argument);  // must not return
  // The flow that runs now, as something to come back to.
  Fiber();
  // Starts in `body` when it is entered for the first time.
  Fiber(Body body, void* argument);
  // A fiber that was left inside of its body is never entered again; its stack is not given back.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Leaves `from`, which runs now, and goes on in `to` where that was left.
  static void go(Fiber& from, Fiber& to);

  // The memory of its stack: what lies there belongs to one thread.
  const char* stack_begin() const { return stack_; }
  const char* stack_end() const { return stack_ + stack_bytes_; }

 private:
  static void arrive(boost::context::fiber&& left);

  char* stack_ = nullptr;  // before the context, which sets it when it takes its stack
  size_t stack_bytes_ = 0;
  boost::context::fiber context_;  // empty while it runs
  void* sanitizer_stack_ = nullptr;
};

}  // namespace tg::simt
