// SHA-256 (FIPS 180-4), to name the data that a run was trained on.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tg::app {

class Sha256 {
 public:
  void add(const void* data, size_t bytes);
  std::string hex();  // ends it

 private:
  void block(const unsigned char* p);
  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> rest_{};
  size_t filled_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace tg::app
