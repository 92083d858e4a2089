// Two accesses of one byte by two threads, one of them a write, must be ordered: by a barrier of
// the block, by __syncwarp if they share a warp, or both be atomic. Blocks are not ordered at all.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "tapegrad/kernels/simt/hooks/access.h"

namespace tg::simt::hooks {

// When something happened: the block, how often it and the warp had met before.
struct Moment {
  uint32_t block = 0;
  unsigned thread = 0;
  uint32_t block_meetings = 0, warp_meetings = 0;
  const void* code = nullptr;
  bool happened = false;
};

class Races {
 public:
  void launch_begins() { global_.clear(); }
  void block_begins(unsigned threads);
  void block_met() { ++block_meetings_; }
  void warp_met(unsigned warp) { ++warp_meetings_[warp]; }
  // "" or what is wrong, in one line.
  std::string check(const Access& access);

 private:
  struct Byte {
    Moment write, read;
    bool atomic = false;        // the write
    bool several_read = false;  // more than the one in `read`, since the block met last
    bool atomic_reads = false;  // all of these; else `read` is one that is not
  };
  Byte& byte_at(const Access& access, uintptr_t offset);
  bool ordered(const Moment& before, const Access& now) const;
  std::string check_byte(Byte& byte, const Access& access);

  uint32_t block_ = 0, block_meetings_ = 0;
  std::vector<uint32_t> warp_meetings_;
  std::unordered_map<uintptr_t, Byte> shared_, global_;
};

}  // namespace tg::simt::hooks
