// A bar with loss, accuracy, speed and time left on a terminal; a plain line now and then
// elsewhere.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace tg::app {

class Progress {
 public:
  // total: steps in all; done: where we start (after a resume).
  Progress(std::string title, int64_t total, int64_t done = 0);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // After each step: samples of the step, and the running figures to show.
  void step(int64_t samples, double loss, double accuracy);
  void clear();  // the bar's line
  double samples_per_second() const;
  double seconds() const;

 private:
  void draw(double loss, double accuracy);
  using Clock = std::chrono::steady_clock;
  std::string title_;
  int64_t total_, done_, first_, samples_ = 0;
  bool terminal_;
  Clock::time_point start_, last_draw_;
};

// "1:05" or "2:03:10"
std::string clock_text(double seconds);

}  // namespace tg::app
