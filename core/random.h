// Generators: who hands out which piece of the random sequence (core/philox.h).
#pragma once
#include <cstdint>

#include "tapegrad/core/device.h"
#include "tapegrad/core/lock.h"
#include "tapegrad/core/random_state.h"

namespace tg {

inline constexpr uint64_t kDefaultSeed = 0;

// A position in the sequence of a seed. An operator that needs n numbers, k of them to a block
// (kPerBlock), calls reserve(blocks_for(n, k)) once and fills element i from block i / k of the
// state it gets: element i depends on seed, offset and i alone, whoever computes it. May be used
// by several threads; which of them comes first is then up to them.
class Generator {
 public:
  explicit Generator(uint64_t seed = kDefaultSeed, uint64_t stream = 0) : state_{seed, 0, stream} {}
  Generator(const Generator& o) : state_(o.state()) {}
  Generator& operator=(const Generator& o) {
    set_state(o.state());
    return *this;
  }

  // Starts the sequence of this seed from its beginning.
  void manual_seed(uint64_t seed);
  uint64_t seed() const { return state().seed; }

  // What is needed to go on from here later: three numbers for a checkpoint.
  RandomState state() const;
  void set_state(const RandomState& state);

  // The position before `blocks` blocks, which now belong to the caller.
  RandomState reserve(uint64_t blocks);

  // Single numbers for code on the host (shuffles, augmentation); each takes one block.
  double uniform();                // [0, 1)
  double normal();                 // mean 0, deviation 1
  int64_t integer(int64_t below);  // [0, below); ValueError unless below >= 1
  bool bernoulli(double p) { return uniform() < p; }

 private:
  mutable Lock lock_;
  RandomState state_;
};

constexpr uint64_t blocks_for(int64_t n, int per_block) {
  return (uint64_t(n) + uint64_t(per_block) - 1) / uint64_t(per_block);
}

// What operators draw from unless they are given a generator. Equal seeds give equal bits on every
// device. DeviceError for a device there cannot be.
Generator& default_generator(Device device = {});
// Seeds the default generators of all devices.
void manual_seed(uint64_t seed);

}  // namespace tg
