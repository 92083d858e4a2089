#include "tapegrad/tools/app/interrupt.h"

#include <csignal>

namespace tg::app {
namespace {

volatile std::sig_atomic_t asked = 0;

void on_signal(int number) {
  asked = 1;
  std::signal(number, SIG_DFL);  // the next one ends the program
}

}  // namespace

void catch_interrupts() {
  asked = 0;
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

bool interrupted() { return asked != 0; }

}  // namespace tg::app
