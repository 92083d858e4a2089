#include "tapegrad/core/memory.h"

#include <cstdio>

namespace tg {

const char* name_of(Purpose purpose) {
  static constexpr const char* names[kPurposeCount] = {
      "parameter", "optimizer", "gradient", "batch", "saved", "workspace", "other"};
  return names[int(purpose)];
}

std::string bytes_text(int64_t bytes) {
  static constexpr const char* units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  uint64_t size = bytes < 0 ? 0 - uint64_t(bytes) : uint64_t(bytes);
  std::string sign = bytes < 0 ? "-" : "";
  if (size < 1024) return sign + std::to_string(size) + " B";
  int unit = 0;
  uint64_t one = 1024;
  // 1023.995 of a unit would be shown as 1024.00 of it.
  while (unit < 5 && (size / one >= 1024 || size / (one >> 10) * 1000 / 1024 >= 1023995)) {
    one <<= 10;
    ++unit;
  }
  // Two digits by integers, so that no locale has a say: whole part, then rounded hundredths.
  uint64_t whole = size / one;
  uint64_t hundredths = ((size % one) / (one >> 10) * 100 + 512) / 1024;
  if (hundredths == 100) {
    ++whole;
    hundredths = 0;
  }
  char digits[8];
  std::snprintf(digits, sizeof digits, ".%02d ", int(hundredths));
  return sign + std::to_string(whole) + digits + units[unit];
}

std::string memory_summary(Device device) {
  MemoryStats stats = memory_stats(device);
  auto row = [](const std::string& name, int64_t bytes) {
    std::string value = bytes_text(bytes);
    std::string line = "  " + name + std::string(name.size() < 12 ? 12 - name.size() : 1, ' ');
    return line + std::string(value.size() < 12 ? 12 - value.size() : 0, ' ') + value + "\n";
  };
  std::string text = "memory of " + to_text(device) + "\n";
  for (int p = 0; p < kPurposeCount; ++p) text += row(name_of(Purpose(p)), stats.by_purpose[p]);
  text += row("live", stats.live) + row("peak", stats.peak) + row("reserved", stats.reserved);
  return text;
}

}  // namespace tg
