#include "tapegrad/core/memory_guard.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "tapegrad/core/error.h"
#include "tapegrad/core/scope.h"

namespace tg {
namespace {

constexpr size_t kGuardBytes = 64;  // keeps the block's alignment
constexpr unsigned char kPattern = 0xA5;
constexpr unsigned char kFresh = 0xFF;

struct Guarded {
  size_t bytes;
  std::string asked_by;
};

struct Registry {
  std::mutex mutex;
  int guards = 0;  // MemoryGuards that live
  std::unordered_map<const unsigned char*, Guarded> blocks;
  std::string damage;  // the first that a freed block showed

  // With the mutex held.
  void update_flag() {
    detail::guards_in_use.store(guards > 0 || !blocks.empty(), std::memory_order_relaxed);
  }
};

// Never destroyed: blocks are freed until the process is gone.
Registry& registry() {
  static auto* r = new Registry;
  return *r;
}

// "" if the bytes around the block are as they were.
std::string damage_of(const unsigned char* data, const Guarded& block) {
  for (size_t i = 1; i <= kGuardBytes; ++i) {
    const bool before = *(data - i) != kPattern;
    if (!before && data[block.bytes + i - 1] == kPattern) continue;
    return "byte " + std::to_string(i) + (before ? " before the start" : " past the end") +
           " of a block of " + std::to_string(block.bytes) + " bytes was written; " +
           (block.asked_by.empty() ? "no operator" : block.asked_by) + " had asked for it";
  }
  return "";
}

std::string who_is_running() {
  std::string path = module_path();
  const char* op = running_operator();
  if (op) path += (path.empty() ? "" : ": ") + std::string(op);
  return path;
}

}  // namespace

MemoryGuard::MemoryGuard() {
  if (!kWorks) return;
  Registry& r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  ++r.guards;
  r.update_flag();
}

MemoryGuard::~MemoryGuard() {
  if (!kWorks) return;
  Registry& r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  --r.guards;
  r.update_flag();
}

void MemoryGuard::check() const {
  Registry& r = registry();
  std::string damage;
  {
    std::lock_guard<std::mutex> lock(r.mutex);
    damage = std::exchange(r.damage, "");
    for (auto it = r.blocks.begin(); damage.empty() && it != r.blocks.end(); ++it)
      damage = damage_of(it->first, it->second);
  }
  tg::check<InternalError>(damage.empty(), damage);
}

namespace detail {

void* take_guarded(ThreadMemory* memory, size_t bytes) {
  Registry& r = registry();
  std::string asked_by = who_is_running();
  std::lock_guard<std::mutex> lock(r.mutex);
  if (r.guards == 0) return take_block(memory, bytes);  // only old blocks have guards
  if (bytes > kLargestBlock - 2 * kGuardBytes) return nullptr;
  auto* block = static_cast<unsigned char*>(take_block(memory, bytes + 2 * kGuardBytes));
  if (!block) return nullptr;
  unsigned char* data = block + kGuardBytes;
  std::memset(block, kPattern, kGuardBytes);
  std::memset(data, kFresh, bytes);
  std::memset(data + bytes, kPattern, kGuardBytes);
  r.blocks.emplace(data, Guarded{bytes, std::move(asked_by)});
  return data;
}

bool give_guarded(ThreadMemory* memory, void* data, size_t bytes) noexcept {
  Registry& r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  auto* start = static_cast<unsigned char*>(data);
  auto found = r.blocks.find(start);
  if (found == r.blocks.end()) return false;
  if (r.damage.empty()) r.damage = damage_of(start, found->second);
  r.blocks.erase(found);
  r.update_flag();
  give_block(memory, start - kGuardBytes, bytes + 2 * kGuardBytes);
  return true;
}

}  // namespace detail
}  // namespace tg
