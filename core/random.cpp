#include "tapegrad/core/random.h"

#include "tapegrad/core/error.h"
#include "tapegrad/core/philox.h"

namespace tg {
namespace {

constexpr int kMostGpus = 64;

// Never destroyed: destructors of other statics may still draw. The CPU comes first.
Generator* all_generators() {
  static Generator* const generators = new Generator[1 + kMostGpus];
  return generators;
}

}  // namespace

void Generator::manual_seed(uint64_t seed) {
  LockGuard guard(lock_);
  state_.seed = seed;
  state_.offset = 0;
}

RandomState Generator::state() const {
  LockGuard guard(lock_);
  return state_;
}

void Generator::set_state(const RandomState& state) {
  LockGuard guard(lock_);
  state_ = state;
}

RandomState Generator::reserve(uint64_t blocks) {
  LockGuard guard(lock_);
  RandomState before = state_;
  state_.offset += blocks;
  return before;
}

double Generator::uniform() { return uniform_f64(random_block(reserve(1), 0).wide(0)); }

double Generator::normal() {
  double x[2];
  normal_block(random_block(reserve(1), 0), x);
  return x[0];
}

int64_t Generator::integer(int64_t below) {
  check<ValueError>(below >= 1, "integer: there is no whole number in [0,", below, ")");
  return int64_t(uniform_below(random_block(reserve(1), 0).wide(0), uint64_t(below)));
}

Generator& default_generator(Device device) {
  if (device.is_cpu()) return all_generators()[0];
  check<DeviceError>(device.index >= 0 && device.index < kMostGpus, "no such device:", device);
  return all_generators()[1 + device.index];
}

void manual_seed(uint64_t seed) {
  for (int i = 0; i < 1 + kMostGpus; ++i) all_generators()[i].manual_seed(seed);
}

}  // namespace tg
