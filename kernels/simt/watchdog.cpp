#include "tapegrad/kernels/simt/watchdog.h"

#include <unistd.h>
#include <csignal>
#include <ctime>

#include "tapegrad/kernels/simt/block.h"

namespace tg::simt {
namespace {

int tick_signal() { return SIGRTMIN + 5; }

void on_tick(int) {
  if (Block* block = Block::running()) block->tick();
}

// One timer for each thread of the system, made when it first runs a kernel.
struct Timer {
  timer_t id{};
  bool made = false, armed = false;
  Timer() {
    struct sigaction action {};
    action.sa_handler = on_tick;
    // The handler may leave the fiber for good, so the signal must not stay blocked.
    action.sa_flags = SA_RESTART | SA_NODEFER;
    sigaction(tick_signal(), &action, nullptr);
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = tick_signal();
    event._sigev_un._tid = gettid();
    made = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &id) == 0;
  }
  ~Timer() {
    if (made) timer_delete(id);
  }
  void set(double period) {
    itimerspec spec{};
    spec.it_interval.tv_sec = time_t(period);
    spec.it_interval.tv_nsec = long((period - double(time_t(period))) * 1e9);
    spec.it_value = spec.it_interval;
    if (made) timer_settime(id, 0, &spec, nullptr);
  }
};

Timer& timer() {
  static thread_local Timer own;
  return own;
}

}  // namespace

Watchdog::Watchdog(double seconds) : outer_(!timer().armed) {
  if (!outer_) return;
  timer().armed = true;
  timer().set(seconds / kTicksBeforeBark);
}

Watchdog::~Watchdog() {
  if (!outer_) return;
  timer().set(0);
  timer().armed = false;
}

}  // namespace tg::simt
