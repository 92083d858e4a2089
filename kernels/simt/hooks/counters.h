// What the accesses of a kernel cost on a device, by source line. The accesses that the lanes of a
// warp make at one place of the code, each for the n-th time since the block met last, are taken
// for one request of the warp.
#pragma once
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tapegrad/kernels/simt/hooks/access.h"

namespace tg::simt::hooks {

struct LineCost {
  Memory memory = Memory::global;
  bool write = false, atomic = false;
  unsigned bytes = 0;  // of one lane
  int64_t requests = 0, lanes = 0;
  // Global: sectors of 32 bytes that are moved. Shared: passes over the 32 banks.
  int64_t moved = 0, least = 0;
};

class Counters {
 public:
  void kernel_begins(const std::string& name) { kernel_ = &kernels_[name]; }
  void block_begins(unsigned threads);
  void add(const Access& access);
  // Closes the requests that are open: at a meeting of the block, and at its end.
  void close();
  void clear() { kernels_.clear(); }
  // A line for each place, kernel by kernel, of those whose name holds `part`.
  std::string table(const std::string& part) const;
  // Added up over all lines of such kernels, by memory.
  LineCost total(const std::string& part, Memory memory) const;

 private:
  struct Request {
    Access first;
    unsigned lanes = 0;
    uintptr_t address[32];
  };
  struct Key {
    unsigned warp;
    const void* code;
    unsigned nth;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& k) const {
      return reinterpret_cast<size_t>(k.code) * 0x9E3779B97F4A7C15u ^ (size_t(k.warp) << 32) ^
             k.nth;
    }
  };
  using Lines = std::map<const void*, LineCost>;
  std::map<std::string, Lines> kernels_;
  Lines* kernel_ = nullptr;
  std::unordered_map<Key, Request, KeyHash> open_;
  std::vector<std::unordered_map<const void*, unsigned>> times_;  // by thread
};

}  // namespace tg::simt::hooks
