#include "tapegrad/kernels/simt/block.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "tapegrad/kernels/simt/builtins.h"
#include "tapegrad/kernels/simt/observer.h"
#include "tapegrad/kernels/simt/settings.h"
#include "tapegrad/kernels/simt/watchdog.h"

constinit thread_local uint3 threadIdx{}, blockIdx{};
constinit thread_local dim3 blockDim{1, 1, 1}, gridDim{1, 1, 1};

namespace tg::simt {
namespace {

thread_local Block* running_block = nullptr;

std::string to_text(uint3 i) {
  return "(" + std::to_string(i.x) + "," + std::to_string(i.y) + "," + std::to_string(i.z) + ")";
}

bool same_place(Place a, Place b) { return a.line == b.line && !std::strcmp(a.file, b.file); }

unsigned lane_of(const Thread& t) { return t.linear % 32; }

std::string diverged(const char* what, const Thread& other) {
  return std::string("barrier divergence: stands in ") + what + " while thread " +
         to_text(other.index) + " waits in " + other.what + " at " + simt::to_text(other.place);
}
std::string diverged(const char* what, const Meeting& other) {
  return std::string("warp divergence: stands in ") + what +
         " while other lanes of the same mask wait in " + other.what + " at " +
         simt::to_text(other.place);
}

}  // namespace

std::string to_text(Place place) {
  const char* slash = std::strrchr(place.file, '/');
  return std::string(slash ? slash + 1 : place.file) + ":" + std::to_string(place.line);
}

Block* Block::running() { return running_block; }

Observer*& observer() {
  static Observer* one = nullptr;
  return one;
}

bool in_kernel(unsigned& thread) {
  Block* block = Block::running();
  if (!block || !block->in_thread()) return false;
  thread = block->current().linear;
  return true;
}

bool on_own_stack(const void* address) {
  const Fiber& fiber = *Block::running()->current().fiber;
  return address >= fiber.stack_begin() && address < fiber.stack_end();
}

void Block::prepare(const Launch& launch, uint3 index, uint32_t seed) {
  launch_ = &launch;
  blockIdx = index;
  blockDim = launch.block;
  gridDim = launch.grid;
  error_.clear();
  ready_.clear();
  started_ = ended_ = at_barrier_ = 0;
  current_ = nullptr;
  random_.seed(seed);
  if (!outside_) outside_ = std::make_unique<Fiber>();
  if (shared_size_ != launch.shared) {
    // Of exactly this size, so that the address sanitizer sees an access past its end.
    shared_.reset(launch.shared ? new unsigned char[launch.shared] : nullptr);
    shared_size_ = launch.shared;
  }
  if (shared_ && settings().poison) std::memset(shared_.get(), 0xFF, shared_size_);
  prepare_threads();
}

void Block::prepare_threads() {
  const dim3 size = launch_->block;
  const unsigned count = size.x * size.y * size.z;
  threads_.resize(count);
  for (unsigned i = 0; i < count; ++i) {
    Thread& t = threads_[i];
    t.index = {i % size.x, i / size.x % size.y, i / (size.x * size.y)};
    t.linear = i;
    t.state = Thread::State::fresh;
    t.fiber = nullptr;
  }
  warps_.resize((count + 31) / 32);
  for (unsigned w = 0; w < warps_.size(); ++w) {
    const unsigned lanes = std::min(32u, count - 32 * w);
    warps_[w].lanes = lanes == 32 ? ~0u : (1u << lanes) - 1;
    warps_[w].ended = 0;
    warps_[w].meetings.clear();
  }
  order_.resize(count);
  std::iota(order_.begin(), order_.end(), 0u);
  if (settings().order == Order::reverse) std::reverse(order_.begin(), order_.end());
  if (settings().order == Order::shuffled) std::shuffle(order_.begin(), order_.end(), random_);
}

std::string Block::run(const Launch& launch, uint3 index, uint32_t seed) {
  prepare(launch, index, seed);
  running_block = this;
  if (observer()) observer()->block_begins(unsigned(threads_.size()));
  leave(*outside_);
  running_block = nullptr;
  if (observer()) observer()->block_ends();
  drop_copies();
  if (!error_.empty()) {  // some fibers stand in the middle of the kernel
    idle_fibers_.clear();
    fibers_.clear();
  }
  return error_;
}

// The life of a fiber: it runs one thread after the other. Those that never wait run back to back.
void Block::live(Fiber& self) {
  for (;;) {
    launch_->call(launch_->arguments.get());
    end_thread();
    idle_fibers_.push_back(&self);
    leave(self);
  }
}

void Block::end_thread() {
  Thread& t = *current_;
  t.state = Thread::State::ended;
  ++ended_;
  Warp& warp = warps_[t.linear / 32];
  warp.ended |= 1u << lane_of(t);
  // Who has ended is not waited for.
  for (size_t i = warp.meetings.size(); i-- > 0;)
    if (warp.complete(warp.meetings[i])) close(warp, t.linear / 32 * 32, i);
}

void Block::leave(Fiber& from) {
  turns_ = turns_ + 1;
  Thread* t = next();
  current_ = t;
  Fiber* to = outside_.get();
  if (t) {
    if (!t->fiber) give_fiber(*t);
    threadIdx = t->index;
    to = t->fiber;
  }
  if (to != &from) Fiber::go(from, *to);
}

void Block::give_fiber(Thread& thread) {
  if (idle_fibers_.empty()) {
    auto body = [](Fiber& self, void* block) { static_cast<Block*>(block)->live(self); };
    fibers_.push_back(std::make_unique<Fiber>(body, this));
    idle_fibers_.push_back(fibers_.back().get());
  }
  thread.fiber = idle_fibers_.back();
  idle_fibers_.pop_back();
}

Thread* Block::next() {
  if (!error_.empty()) return nullptr;
  if (ready_.empty() && started_ == threads_.size() && at_barrier_ > 0 &&
      at_barrier_ == threads_.size() - ended_)
    release_barrier();
  if (!ready_.empty()) {
    Thread* t = ready_.front();
    ready_.pop_front();
    return t;
  }
  if (started_ < threads_.size()) return &threads_[order_[started_++]];
  if (ended_ < threads_.size()) fail(deadlock());
  return nullptr;
}

// Threads that became ready together run in the chosen order.
void Block::make_ready(size_t since) {
  auto first = ready_.begin() + std::ptrdiff_t(since);
  if (settings().order == Order::reverse) std::reverse(first, ready_.end());
  if (settings().order == Order::shuffled) std::shuffle(first, ready_.end(), random_);
  for (auto t = first; t != ready_.end(); ++t) (*t)->state = Thread::State::ready;
}

void Block::barrier(Place place, const char* what, bool vote) {
  Thread& t = *current_;
  if (at_barrier_ == 0)
    first_at_barrier_ = &t;
  else if (!same_place(first_at_barrier_->place, place))
    fault(diverged(what, *first_at_barrier_), place);
  t.place = place;
  t.what = what;
  t.vote = vote;
  t.state = Thread::State::at_barrier;
  ++at_barrier_;
  leave(*t.fiber);
}

void Block::release_barrier() {
  if (observer()) observer()->block_met();
  at_barrier_ = 0;
  votes_ = {};
  const size_t since = ready_.size();
  for (Thread& t : threads_) {
    if (t.state != Thread::State::at_barrier) continue;
    votes_.yes += t.vote;
    ++votes_.all;
    ready_.push_back(&t);
  }
  make_ready(since);
}

void Block::meeting(unsigned mask, Meet meet, void* payload, const char* what, Place place) {
  Thread& t = *current_;
  const unsigned mine = 1u << lane_of(t);
  if (!(mask & mine)) fault(std::string(what) + ": the mask leaves out the lane that calls", place);
  t.place = place;
  t.what = what;
  t.mask = mask;
  t.payload = payload;
  t.state = Thread::State::in_meeting;

  Warp& warp = warps_[t.linear / 32];
  size_t i = 0;
  while (i < warp.meetings.size() && warp.meetings[i].mask != mask) ++i;
  if (i == warp.meetings.size()) warp.meetings.push_back({mask, 0, meet, what, place});
  Meeting& m = warp.meetings[i];
  if (m.meet != meet || std::strcmp(m.what, what) != 0) fault(diverged(what, m), place);
  m.arrived |= mine;
  if (warp.complete(m)) {
    close(warp, t.linear / 32 * 32, i);
    if (settings().order == Order::forward) {  // the last one goes on at once
      std::erase(ready_, &t);
      return;
    }
  }
  leave(*t.fiber);
}

void Block::close(Warp& warp, unsigned first_thread, size_t meeting) {
  const Meeting m = warp.meetings[meeting];
  warp.meetings.erase(warp.meetings.begin() + std::ptrdiff_t(meeting));
  void* payloads[32] = {};
  const size_t since = ready_.size();
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(m.arrived >> lane & 1)) continue;
    payloads[lane] = threads_[first_thread + lane].payload;
    ready_.push_back(&threads_[first_thread + lane]);
  }
  meeting_now_ = true;
  if (m.meet)
    m.meet(payloads, m.arrived);
  else if (observer())
    observer()->warp_met(first_thread / 32);
  meeting_now_ = false;
  make_ready(since);
}

void Block::fail(const std::string& what) {
  if (error_.empty())
    error_ = "kernel " + launch_->kernel + ", block " + to_text(blockIdx) + ": " + what;
}

void Block::fault(std::string what, Place place) {
  Thread& t = *current_;
  {
    const std::string text = std::move(what);
    fail("thread " + to_text(t.index) + (place.line ? " at " + to_text(place) : "") + ": " + text);
  }
  current_ = nullptr;
  Fiber::go(*t.fiber, *outside_);
  std::abort();  // never entered again
}

std::string Block::deadlock() const {
  struct Group {
    std::string place;
    unsigned count = 0;
    uint3 first{};
  };
  std::vector<Group> groups;
  for (const Thread& t : threads_) {
    std::string place = "have ended";
    if (t.state != Thread::State::ended) {
      char mask[24] = "";
      if (t.state == Thread::State::in_meeting)
        std::snprintf(mask, sizeof mask, " of mask %08x", t.mask);
      place = std::string("wait in ") + t.what + mask + " at " + to_text(t.place);
    }
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const Group& g) { return g.place == place; });
    if (group == groups.end()) group = groups.insert(groups.end(), {place, 0, t.index});
    ++group->count;
  }
  std::string text = "deadlock:";
  for (const Group& g : groups)
    text += (&g == groups.data() ? " " : "; ") + std::to_string(g.count) +
            " threads, the first is " + to_text(g.first) + ", " + g.place;
  return text;
}

// A copy that nobody waited for must not land in the shared memory of the next block.
void Block::drop_copies() {
  bool dropped = false;
  for (Thread& t : threads_) {
    dropped = dropped || !t.open_copies.empty() || !t.copy_groups.empty();
    t.open_copies.clear();
    t.copy_groups.clear();
  }
  if (dropped && error_.empty())
    report("kernel " + launch_->kernel + ": ends with cp.async copies that nobody waited for");
}

void Block::tick() {
  if (!current_) return;
  if (turns_ != turns_seen_) {
    turns_seen_ = turns_;
    quiet_ticks_ = 0;
  } else if (++quiet_ticks_ >= kTicksBeforeBark) {
    quiet_ticks_ = 0;
    fault("computes without end: does it wait for another thread or block without a barrier?", {});
  }
}

}  // namespace tg::simt
