// One block of threads while it runs. Its threads are fibers that take turns on one thread of the
// system: each runs until it ends or has to wait for others, then the next one runs.
#pragma once
#include <csignal>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tapegrad/kernels/simt/engine.h"
#include "tapegrad/kernels/simt/fiber.h"

namespace tg::simt {

// A cp.async that has not happened yet.
struct PendingCopy {
  void* shared;
  const void* global;
  int bytes, total;
};

struct Thread {
  enum class State : uint8_t { fresh, ready, at_barrier, in_meeting, ended };
  uint3 index{};
  unsigned linear = 0;  // x + y * width + z * width * height, as CUDA counts
  State state = State::fresh;
  Fiber* fiber = nullptr;

  // While it waits: where, in what, for whom, and what it brought.
  Place place;
  const char* what = "";
  unsigned mask = 0;
  void* payload = nullptr;
  bool vote = false;

  std::vector<PendingCopy> open_copies;
  std::deque<std::vector<PendingCopy>> copy_groups;
};

struct Meeting {
  unsigned mask = 0, arrived = 0;  // lanes
  Meet meet = nullptr;
  const char* what = "";
  Place place;
};

struct Warp {
  unsigned lanes = 0, ended = 0;
  std::vector<Meeting> meetings;  // that some lanes wait in
  bool complete(const Meeting& m) const {
    return ((m.arrived | ended) & m.mask & lanes) == (m.mask & lanes);
  }
};

class Block {
 public:
  // The one that runs on this thread of the system; null outside of kernels.
  static Block* running();

  // Runs the block to its end; "" or what went wrong, in one line.
  std::string run(const Launch& launch, uint3 index, uint32_t seed);

  // Called by the thread that runs now.
  void barrier(Place place, const char* what, bool vote);
  Votes votes() const { return votes_; }
  void meeting(unsigned mask, Meet meet, void* payload, const char* what, Place place);
  // By value: the stack of who calls is left for good, and so what it holds must not own memory.
  [[noreturn]] void fault(std::string what, Place place);
  Thread& current() { return *current_; }
  unsigned char* shared() { return shared_.get(); }
  size_t shared_bytes() const { return launch_->shared; }
  // False while the engine works for several threads at once.
  bool in_thread() const { return current_ && !meeting_now_; }

  // Called by the watchdog, from a signal handler, some times a second.
  void tick();

 private:
  void prepare(const Launch& launch, uint3 index, uint32_t seed);
  void prepare_threads();
  void live(Fiber& self);
  void end_thread();
  // The thread of `from` waits or has ended: the next one runs.
  void leave(Fiber& from);
  Thread* next();
  void give_fiber(Thread& thread);
  void release_barrier();
  void close(Warp& warp, unsigned first_thread, size_t meeting);
  void make_ready(size_t since);
  void fail(const std::string& what);
  std::string deadlock() const;
  void drop_copies();

  const Launch* launch_ = nullptr;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<unsigned> order_;  // in which threads start
  size_t started_ = 0, ended_ = 0, at_barrier_ = 0;
  std::deque<Thread*> ready_;
  Thread* current_ = nullptr;
  bool meeting_now_ = false;
  Thread* first_at_barrier_ = nullptr;
  Votes votes_;
  std::string error_;
  std::mt19937 random_;

  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_fibers_;
  std::unique_ptr<Fiber> outside_;  // of the block: whoever called run
  std::unique_ptr<unsigned char[]> shared_;
  size_t shared_size_ = 0;

  // What the watchdog looks at.
  volatile std::sig_atomic_t turns_ = 0;
  std::sig_atomic_t turns_seen_ = 0;
  int quiet_ticks_ = 0;
};

}  // namespace tg::simt
