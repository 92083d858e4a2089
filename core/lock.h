// A lock for a handful of instructions, such as taking numbers from a counter pair. Public headers
// use it where the standard's mutex would bring clocks and condition variables along.
#pragma once
#include <atomic>

namespace tg {

// Whoever finds it taken sleeps until it is given back.
class Lock {
 public:
  void lock() {
    while (taken_.test_and_set(std::memory_order_acquire)) taken_.wait(true);
  }
  void unlock() {
    taken_.clear(std::memory_order_release);
    taken_.notify_one();
  }

 private:
  std::atomic_flag taken_;
};

class LockGuard {
 public:
  explicit LockGuard(Lock& lock) : lock_(lock) { lock_.lock(); }
  ~LockGuard() { lock_.unlock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  Lock& lock_;
};

}  // namespace tg
