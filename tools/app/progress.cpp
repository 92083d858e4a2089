#include "tapegrad/tools/app/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace tg::app {
namespace {
constexpr int kBarWidth = 24, kLeastBar = 5;
constexpr double kTerminalPause = 0.1, kPlainPause = 10;  // seconds between two draws
}  // namespace

std::string clock_text(double seconds) {
  auto s = int64_t(seconds + 0.5);
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

Progress::Progress(std::string title, int64_t total, int64_t done)
    : title_(std::move(title)),
      total_(total),
      done_(done),
      first_(done),
      terminal_(isatty(STDOUT_FILENO) != 0),
      start_(Clock::now()),
      last_draw_(start_) {}

void Progress::clear() {
  if (!terminal_) return;
  std::fputs("\r\033[K", stdout);
  std::fflush(stdout);
}

double Progress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

double Progress::samples_per_second() const { return double(samples_) / std::max(seconds(), 1e-9); }

void Progress::step(int64_t samples, double loss, double accuracy) {
  ++done_;
  samples_ += samples;
  double pause = std::chrono::duration<double>(Clock::now() - last_draw_).count();
  if (pause < (terminal_ ? kTerminalPause : kPlainPause) && done_ < total_) return;
  last_draw_ = Clock::now();
  draw(loss, accuracy);
}

void Progress::draw(double loss, double accuracy) {
  double part = total_ > 0 ? double(done_) / double(total_) : 1;
  double left = seconds() / double(std::max<int64_t>(1, done_ - first_)) * double(total_ - done_);
  std::string figures = fmt::format("loss {:.4f}  accuracy {:.1f}%  {:.0f} samples/s  {} left",
                                    loss, 100 * accuracy, samples_per_second(), clock_text(left));
  if (terminal_) {
    // A line that is wider than the terminal would not be overwritten by the next one.
    winsize size{};
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    int columns = known ? size.ws_col : 80;
    std::string line = fmt::format("{} {:3.0f}%  {}", title_, 100 * part, figures);
    int room = std::min(kBarWidth, columns - 4 - int(line.size()));
    if (room >= kLeastBar) {
      int full = int(part * room);
      line.insert(title_.size(), " [" + std::string(size_t(full), '#') +
                                     std::string(size_t(room - full), '.') + "]");
    }
    fmt::print("\r{}\033[K", line.substr(0, size_t(std::max(1, columns - 1))));
  } else {
    fmt::print("{} {}/{} {}\n", title_, done_, total_, figures);
  }
  std::fflush(stdout);
}

}  // namespace tg::app
