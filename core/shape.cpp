#include "tapegrad/core/shape.h"

#include "tapegrad/core/error.h"

namespace tg {

Shape::Shape(std::span<const int64_t> sizes) : rank_(int(sizes.size())) {
  check<ShapeError>(sizes.size() <= size_t(kMaxRank), "at most", kMaxRank,
                    "dimensions are supported, got", int64_t(sizes.size()));
  for (int i = 0; i < rank_; ++i) v_[i] = sizes[i];
}

Shape Shape::filled(int rank, int64_t value) {
  Shape s;
  for (int i = 0; i < rank; ++i) s.push_back(value);
  return s;
}

size_t Shape::from_end(int64_t i) const {
  check<IndexError>(i >= -rank_ && i < rank_, "index", i, "is out of range for the", rank_,
                    "entries of", *this);
  return size_t(i + rank_);
}

void Shape::push_back(int64_t value) { insert(rank_, value); }

void Shape::insert(int position, int64_t value) {
  check<ShapeError>(rank_ < kMaxRank, "at most", kMaxRank, "dimensions are supported, got",
                    rank_ + 1);
  for (int i = rank_; i > position; --i) v_[i] = v_[i - 1];
  v_[position] = value;
  ++rank_;
}

void Shape::erase(int position) {
  for (int i = position; i + 1 < rank_; ++i) v_[i] = v_[i + 1];
  v_[--rank_] = 0;
}

std::string to_text(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank(); ++i) {
    if (i) text += ',';
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

// A stride of a dimension of size 0 or 1 is never used to address anything; it is set as if the
// size were 1, so that equal layouts have equal strides.
Shape contiguous_strides(const Shape& shape) {
  Shape strides = shape;
  int64_t* entry = strides.begin();  // a size until it becomes a stride
  int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    const int64_t size = entry[i];
    entry[i] = step;
    step = size_product(step, size > 1 ? size : 1);
  }
  return strides;
}

Shape channels_last_strides(const Shape& shape) {
  check<ShapeError>(shape.rank() == 4, "channels-last needs [N,C,H,W], got", shape);
  Shape strides = shape;
  int64_t step = 1;
  for (int i : {1, 3, 2, 0}) {
    strides[i] = step;
    step = size_product(step, shape[i] > 1 ? shape[i] : 1);
  }
  return strides;
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape result = longer;
  int shift = longer.rank() - shorter.rank();
  int64_t* size = result.begin() + shift;
  for (int64_t n : shorter) {
    int64_t& m = *size++;
    if (n == m || n == 1) continue;
    check<ShapeError>(m == 1, "shapes do not broadcast:", a, b);
    m = n;
  }
  return result;
}

int64_t wrap_dim(int64_t dim, int64_t rank) {
  int64_t span = rank > 0 ? rank : 1;
  check<IndexError>(dim >= -span && dim < span, "dim", dim, "is out of range for rank", rank);
  return dim < 0 ? dim + span : dim;
}

}  // namespace tg
