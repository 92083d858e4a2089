#pragma once
#include <cstdint>
#include <string>

namespace tg {

// Height and width; one number means both.
struct Size2 {
  int64_t h = 0, w = 0;
  constexpr Size2() = default;
  constexpr Size2(int64_t both) : h(both), w(both) {}
  constexpr Size2(int64_t height, int64_t width) : h(height), w(width) {}
  constexpr bool operator==(const Size2&) const = default;
};
inline std::string to_text(Size2 s) { return std::to_string(s.h) + "x" + std::to_string(s.w); }

}  // namespace tg
