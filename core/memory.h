// What memory is used for: statistics by device and by purpose, limits, and the report.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "tapegrad/core/device.h"

namespace tg {

// What a block of memory serves. A block starts as what its maker says (mostly `other`) and is
// re-tagged when its use becomes known.
enum class Purpose : uint8_t { parameter, optimizer, gradient, batch, saved, workspace, other };
inline constexpr int kPurposeCount = 7;
const char* name_of(Purpose purpose);

struct MemoryStats {
  int64_t live = 0;      // bytes in use; the purposes sum to this
  int64_t peak = 0;      // largest `live` since the last reset_peak_memory
  int64_t reserved = 0;  // bytes taken from the system: live, rounding and the free lists
  std::array<int64_t, kPurposeCount> by_purpose{};
  int64_t operator[](Purpose p) const { return by_purpose[int(p)]; }
};

MemoryStats memory_stats(Device device = {});
void reset_peak_memory(Device device = {});
// An allocation that would bring `live` above the limit raises OutOfMemoryError. 0: no limit.
void set_memory_limit(int64_t bytes, Device device = {});
// Gives the free lists back to the system.
void empty_cache(Device device = {});
// A table of the statistics for people.
std::string memory_summary(Device device = {});
// "1.50 MiB"
std::string bytes_text(int64_t bytes);

}  // namespace tg
