// Files as a bad disk or a bad transfer leaves them.
#pragma once
#include <cstdint>
#include <string>
#include <utility>

namespace tg::test {

// A few bytes changed, taken out, put in twice, or the end cut off.
class Damage {
 public:
  // `letters` mean something in the format: half of the changed bytes become one of them.
  explicit Damage(std::string letters = "") : letters_(std::move(letters)) {}

  std::string operator()(std::string bytes) {
    for (uint64_t n = 1 + next(4); n > 0; --n) {
      if (bytes.empty()) bytes = "x";
      size_t at = next(bytes.size());
      switch (next(5)) {
        case 0:
          bytes[at] =
              letters_.empty() || next(2) ? char(next(256)) : letters_[next(letters_.size())];
          break;
        case 1:
          bytes[at] = char(bytes[at] ^ (1 << next(8)));
          break;
        case 2:
          bytes.erase(at, 1 + next(8));
          break;
        case 3:
          bytes.insert(at, bytes.substr(next(bytes.size()), next(16)));
          break;
        default:
          if (next(4) == 0) bytes.resize(at);
      }
    }
    return bytes;
  }

 private:
  uint64_t next(uint64_t below) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (state_ >> 33) % below;
  }
  std::string letters_;
  uint64_t state_ = 1729;
};

}  // namespace tg::test
