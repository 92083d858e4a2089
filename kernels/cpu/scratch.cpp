#include "tapegrad/kernels/cpu/scratch.h"

#include <new>
#include <utility>

namespace tg::kernels {
namespace {

constexpr std::align_val_t kAlignment{4096};
constexpr size_t kGranule = 16 << 10;

struct Block {
  void* data = nullptr;
  size_t capacity = 0;
};

// The blocks of one thread that nobody uses; kernels nest a few deep only.
struct FreeBlocks {
  static constexpr int kMost = 8;
  Block blocks[kMost];
  int count = 0;

  ~FreeBlocks() {
    for (int i = 0; i < count; ++i) ::operator delete(blocks[i].data, kAlignment);
  }
  // The smallest block that fits, or none.
  Block take(size_t bytes) {
    int best = -1;
    for (int i = 0; i < count; ++i) {
      if (blocks[i].capacity < bytes) continue;
      if (best < 0 || blocks[i].capacity < blocks[best].capacity) best = i;
    }
    if (best < 0) return {};
    const Block block = blocks[best];
    blocks[best] = blocks[--count];
    return block;
  }
  // Keeps the larger ones when full.
  void give(Block block) {
    if (count == kMost) {
      int least = 0;
      for (int i = 1; i < kMost; ++i) {
        if (blocks[i].capacity < blocks[least].capacity) least = i;
      }
      if (blocks[least].capacity < block.capacity) std::swap(blocks[least], block);
      ::operator delete(block.data, kAlignment);
      return;
    }
    blocks[count++] = block;
  }
};

thread_local FreeBlocks free_blocks;

}  // namespace

ScratchBlock::ScratchBlock(size_t bytes) {
  if (bytes == 0) return;
  Block block = free_blocks.take(bytes);
  if (!block.data) {
    block.capacity = (bytes + kGranule - 1) / kGranule * kGranule;
    block.data = ::operator new(block.capacity, kAlignment);
  }
  data_ = block.data;
  capacity_ = block.capacity;
}

ScratchBlock::~ScratchBlock() {
  if (data_) free_blocks.give({data_, capacity_});
}

}  // namespace tg::kernels
