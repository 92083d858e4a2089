// A place in the sequence of random numbers (core/philox.h makes the numbers).
#pragma once
#include <cstdint>

namespace tg {

// Where a draw stands. Block b of the draw encrypts the counter (offset + b, stream) with the key
// `seed`; each block is four words of 32 random bits.
struct RandomState {
  uint64_t seed = 0;
  uint64_t offset = 0;  // in blocks
  uint64_t stream = 0;  // independent sequences of one seed
  bool operator==(const RandomState&) const = default;
};

}  // namespace tg
