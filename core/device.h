// Where a tensor lives.
#pragma once
#include <cstdint>
#include <string>

namespace tg {

struct Device {
  enum Kind : uint8_t { cpu, cuda };
  Kind kind = cpu;
  int8_t index = 0;

  constexpr Device() = default;
  constexpr Device(Kind k, int i = 0) : kind(k), index(int8_t(i)) {}
  // "cpu", "cuda" or "cuda:1"; anything else throws a DeviceError.
  explicit Device(const std::string& text);
  constexpr bool operator==(const Device&) const = default;
  bool is_cpu() const { return kind == cpu; }
};

inline constexpr Device kCpuDevice{};
std::string to_text(Device d);

}  // namespace tg
