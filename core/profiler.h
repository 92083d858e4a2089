// Hooks of the profiler: one relaxed load when it is off.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace tg {
class Scope;

namespace profiler {

inline std::atomic<bool> enabled{false};
inline bool active() { return enabled.load(std::memory_order_relaxed); }
void begin(const Scope& scope);
void end(const Scope& scope);

// Time spent under one name (an operator, or a module's type), over all threads.
struct Entry {
  std::string name;
  int64_t calls = 0;
  double total_seconds = 0;  // with what was called inside
  double self_seconds = 0;   // without
};

// Forgets what was measured and starts; stop() ends it. Not to be called inside an operator.
void start();
void stop();
// What was measured, the largest self time first; and the same as a text table.
std::vector<Entry> entries();
std::string table(int most = 30);

}  // namespace profiler
}  // namespace tg
