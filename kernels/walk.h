// Seeing several strided operands of one shape as few loops as possible.
//
// The dimensions are ordered by the strides of the first operand (the output), so that its memory
// is written from front to back; dimensions of size 1 go, and neighbours that every operand walks
// through evenly become one. Two dense operands of one layout are a single loop.
#pragma once
#include <cstdint>
#include <span>

#include "tapegrad/core/view.h"

namespace tg::kernels {

inline constexpr int kMaxOperands = 5;

struct Layout {
  const Shape* shape;
  const Shape* strides;
  int64_t bytes;  // of an element
};
template <class Pointer>
Layout layout_of(const BasicView<Pointer>& v) {
  return {v.shape_ptr, v.stride_ptr, int64_t(size_of(v.dtype))};
}

struct Walk {
  int rank = 1;                          // loops; at least 1
  int64_t numel = 0;                     // of operand 0
  int64_t size[kMaxRank];                // outermost first
  int64_t step[kMaxOperands][kMaxRank];  // of each operand and loop, in bytes
  int64_t inner() const { return size[rank - 1]; }
  int64_t inner_step(int operand) const { return step[operand][rank - 1]; }
};

// Operand 0 gives the shape; the others broadcast to it.
Walk plan_walk(std::span<const Layout> operands);

// Where a walk stands: the byte offset of each operand at flat index `at` (row-major over the
// walk's loops).
template <int kMost>
class Position {
 public:
  Position(const Walk& walk, int64_t at, int operands = kMost) : walk_(&walk), count_(operands) {
    for (int d = walk.rank - 1; d >= 0; --d) {
      index_[d] = at % walk.size[d];
      at /= walk.size[d];
      for (int k = 0; k < count_; ++k) offset[k] += index_[d] * walk.step[k][d];
    }
  }
  // Elements left in the innermost loop.
  int64_t run() const { return walk_->inner() - index_[walk_->rank - 1]; }
  // n <= run() elements further.
  void advance(int64_t n) {
    int d = walk_->rank - 1;
    index_[d] += n;
    for (int k = 0; k < count_; ++k) offset[k] += n * walk_->step[k][d];
    while (index_[d] == walk_->size[d] && d > 0) {
      for (int k = 0; k < count_; ++k)
        offset[k] += walk_->step[k][d - 1] - walk_->size[d] * walk_->step[k][d];
      index_[d] = 0;
      ++index_[--d];
    }
  }
  int64_t offset[kMost] = {};

 private:
  const Walk* walk_;
  int count_;
  int64_t index_[kMaxRank];
};

}  // namespace tg::kernels
