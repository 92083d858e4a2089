// Notices a kernel that runs without end, e.g. one that waits for a flag of another thread: threads
// take turns only where they wait for each other, so such a flag would never change.
#pragma once

namespace tg::simt {

// A block is taken for spinning after so many ticks in which no thread gave its turn away.
inline constexpr int kTicksBeforeBark = 4;

// While it lives, Block::running()->tick() is called on this thread, kTicksBeforeBark times in
// `seconds` seconds of its CPU time: a program that stands in a debugger does not age.
class Watchdog {
 public:
  explicit Watchdog(double seconds);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  bool outer_;  // not a launch within a launch
};

}  // namespace tg::simt
