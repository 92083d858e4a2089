#include "tapegrad/kernels/simt/engine.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <numeric>
#include <random>

#include "tapegrad/core/parallel.h"
#include "tapegrad/kernels/simt/block.h"
#include "tapegrad/kernels/simt/observer.h"
#include "tapegrad/kernels/simt/settings.h"
#include "tapegrad/kernels/simt/watchdog.h"

namespace tg::simt {

void block_barrier(Place place) { Block::running()->barrier(place, "__syncthreads()", false); }

Votes block_votes(bool mine, Place place) {
  Block::running()->barrier(place, "__syncthreads with a vote", mine);
  return Block::running()->votes();
}

void warp_meeting(unsigned mask, Meet meet, void* payload, const char* what, Place place) {
  Block::running()->meeting(mask, meet, payload, what, place);
}

unsigned lane() { return Block::running()->current().linear % 32; }

void fault(std::string what, Place place) { Block::running()->fault(std::move(what), place); }

unsigned char* dynamic_shared() { return Block::running()->shared(); }
size_t dynamic_shared_bytes() { return Block::running()->shared_bytes(); }

void copy_later(void* shared, const void* global, int bytes, int total) {
  if (observer()) observer()->copy_writes(shared, total);
  Block::running()->current().open_copies.push_back({shared, global, bytes, total});
}

void close_copy_group() {
  Thread& t = Block::running()->current();
  t.copy_groups.push_back(std::move(t.open_copies));
  t.open_copies.clear();
}

void wait_for_copies(int groups_left) {
  Thread& t = Block::running()->current();
  while (int(t.copy_groups.size()) > groups_left) {
    for (const PendingCopy& c : t.copy_groups.front()) {
      if (observer()) observer()->copy_writes(c.shared, c.total);
      if (c.bytes > 0) std::memcpy(c.shared, c.global, size_t(c.bytes));
      std::memset(static_cast<char*>(c.shared) + c.bytes, 0, size_t(c.total - c.bytes));
    }
    t.copy_groups.pop_front();
  }
}

namespace {

// In which order the blocks of a grid get their turn; empty: as they are counted.
std::vector<int64_t> block_order(int64_t blocks) {
  std::vector<int64_t> order;
  if (settings().order == Order::forward) return order;
  order.resize(size_t(blocks));
  std::iota(order.begin(), order.end(), int64_t(0));
  if (settings().order == Order::reverse) std::reverse(order.begin(), order.end());
  if (settings().order == Order::shuffled)
    std::shuffle(order.begin(), order.end(), std::mt19937(settings().seed));
  return order;
}

}  // namespace

std::string run(const Launch& launch) {
  const dim3 grid = launch.grid;
  const int64_t blocks = int64_t(grid.x) * grid.y * grid.z;
  const std::vector<int64_t> order = block_order(blocks);
  if (observer()) observer()->launch_begins(launch);
  std::mutex mutex;
  std::string error;
  std::atomic<bool> failed{false};
  auto run_range = [&](int64_t begin, int64_t end) {
    // One for each thread of the system; that is also what gives each its own __shared__ variables.
    static thread_local Block block;
    Watchdog watchdog(settings().watchdog_seconds);
    for (int64_t i = begin; i < end && !failed; ++i) {
      const int64_t b = order.empty() ? i : order[size_t(i)];
      const uint3 index = {unsigned(b % grid.x), unsigned(b / grid.x % grid.y),
                           unsigned(b / (int64_t(grid.x) * grid.y))};
      std::string message = block.run(launch, index, settings().seed + uint32_t(b));
      if (message.empty()) continue;
      std::lock_guard<std::mutex> lock(mutex);
      if (!failed.exchange(true)) error = message;
    }
  };
  if (settings().parallel_blocks)
    parallel_for(blocks, std::max<int64_t>(1, blocks / 64), run_range);
  else
    run_range(0, blocks);
  return error;
}

}  // namespace tg::simt
