// How kernels run here, and what was noticed. For tests and for the program; kernels do not see it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace tg::simt {

// In which order the threads of a block, and the blocks of a grid, get to run. A kernel that needs
// one of them has a fault.
enum class Order { forward, reverse, shuffled };

struct Settings {
  Order order = Order::forward;
  uint32_t seed = 1;  // of Order::shuffled
  // Blocks run on several threads of the engine's pool; false: one after the other.
  bool parallel_blocks = true;
  // Work of a stream waits until somebody synchronises with it, so that a forgotten synchronise
  // shows as an old value. Otherwise it runs at once.
  bool lazy_streams = false;
  // Bytes that the device seems to have.
  size_t memory = size_t(16) << 30;
  // Fresh device memory and dynamic shared memory is filled with 0xFF: NaN in every float dtype.
  bool poison = true;
  // CPU time after which a thread that neither ends nor waits is taken for spinning.
  double watchdog_seconds = 60;
};
Settings& settings();

// Sets the settings back when it goes out of scope.
class SettingsGuard {
 public:
  SettingsGuard() : before_(settings()) {}
  ~SettingsGuard() { settings() = before_; }
  SettingsGuard(const SettingsGuard&) = delete;
  SettingsGuard& operator=(const SettingsGuard&) = delete;

 private:
  Settings before_;
};

// What was noticed since the last call, one line each: faults of kernels, misuse of the runtime.
std::string take_report();
void report(const std::string& line);

}  // namespace tg::simt
