#include "tapegrad/kernels/simt/fiber.h"

#include <pthread.h>

#include <boost/context/protected_fixedsize_stack.hpp>
#include <mutex>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace tg::simt {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// A sanitizer's frames are larger.
constexpr size_t kStackBytes = kSanitized ? 256 * 1024 : 64 * 1024;

thread_local Fiber* leaving = nullptr;
thread_local Fiber* entering = nullptr;

// Takes stacks from the system with a page in front that must not be touched.
struct StackSource {
  char** begin;
  size_t* bytes;
  boost::context::stack_context allocate() {
    boost::context::stack_context stack =
        boost::context::protected_fixedsize_stack(kStackBytes).allocate();
    *begin = static_cast<char*>(stack.sp) - stack.size;
    *bytes = stack.size;
#if defined(__SANITIZE_ADDRESS__)
    // The addresses may carry the marks of an earlier use.
    __asan_unpoison_memory_region(*begin, *bytes);
#endif
    return stack;
  }
  void deallocate(boost::context::stack_context& stack) noexcept {
    boost::context::protected_fixedsize_stack(kStackBytes).deallocate(stack);
  }
};

// Where fibers end that were left for good. Unwinding them would run destructors of a kernel that
// has failed, some inside of a signal handler.
void keep_forever(boost::context::fiber&& context) {
  static std::mutex mutex;
  static auto* abandoned = new std::vector<boost::context::fiber>;
  std::lock_guard<std::mutex> lock(mutex);
  abandoned->push_back(std::move(context));
}

}  // namespace

Fiber::Fiber() {
  if constexpr (!kSanitized) return;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  void* begin = nullptr;
  pthread_attr_getstack(&attributes, &begin, &stack_bytes_);
  stack_ = static_cast<char*>(begin);
  pthread_attr_destroy(&attributes);
}

Fiber::Fiber(Body body, void* argument)
    : context_(std::allocator_arg, StackSource{&stack_, &stack_bytes_},
               [body, argument](boost::context::fiber&& left) {
                 Fiber& self = *entering;
                 arrive(std::move(left));
                 body(self, argument);
                 return boost::context::fiber();
               }) {}

Fiber::~Fiber() {
  if (context_) keep_forever(std::move(context_));
}

void Fiber::arrive(boost::context::fiber&& left) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(entering->sanitizer_stack_, nullptr, nullptr);
#endif
  leaving->context_ = std::move(left);
}

void Fiber::go(Fiber& from, Fiber& to) {
  leaving = &from;
  entering = &to;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&from.sanitizer_stack_, to.stack_, to.stack_bytes_);
#endif
  boost::context::fiber left = std::move(to.context_).resume();
  arrive(std::move(left));
}

}  // namespace tg::simt
