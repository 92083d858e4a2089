// A short list of sizes, strides or dimensions, held inline.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace tg {

inline constexpr int kMaxRank = 8;

// a * b. It can leave the range only where a shape has no elements, and then nothing is addressed.
constexpr int64_t size_product(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }

// Used for shapes and for strides (in elements). Trivially copyable; rank at most 8. Entries count
// from the end where negative, shape[-1] being the last; IndexError out of range. Loops that know
// where they are may read through begin(), which is not checked.
class Shape {
 public:
  constexpr Shape() = default;
  Shape(std::initializer_list<int64_t> sizes)
      : Shape(std::span<const int64_t>(sizes.begin(), sizes.size())) {}
  Shape(const std::vector<int64_t>& sizes) : Shape(std::span<const int64_t>(sizes)) {}
  explicit Shape(std::span<const int64_t> sizes);  // ShapeError above kMaxRank
  static Shape filled(int rank, int64_t value);

  int rank() const { return rank_; }
  int64_t operator[](int64_t i) const { return v_[place(i)]; }
  int64_t& operator[](int64_t i) { return v_[place(i)]; }
  int64_t back() const { return (*this)[-1]; }
  const int64_t* begin() const { return v_.data(); }
  const int64_t* end() const { return v_.data() + rank_; }
  int64_t* begin() { return v_.data(); }
  int64_t* end() { return v_.data() + rank_; }

  // Product of the entries; 1 for rank 0.
  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n = size_product(n, v_[i]);
    return n;
  }
  void push_back(int64_t value);  // ShapeError above kMaxRank
  void insert(int position, int64_t value);
  void erase(int position);
  bool operator==(const Shape& other) const {
    if (rank_ != other.rank_) return false;
    for (int i = 0; i < rank_; ++i)
      if (v_[i] != other.v_[i]) return false;
    return true;
  }

 private:
  size_t place(int64_t i) const { return uint64_t(i) < uint64_t(rank_) ? size_t(i) : from_end(i); }
  size_t from_end(int64_t i) const;  // of an index that is negative, or out of range

  std::array<int64_t, kMaxRank> v_{};
  int rank_ = 0;
};

// "[2,3]"
std::string to_text(const Shape& shape);

// Row-major strides of a dense tensor of this shape.
Shape contiguous_strides(const Shape& shape);
// Strides of a dense [N,C,H,W] tensor whose channels lie next to each other.
Shape channels_last_strides(const Shape& shape);
// The shape both broadcast to, by the rule that sizes are aligned at the end and 1 stretches;
// ShapeError naming both shapes when they do not fit.
Shape broadcast_shapes(const Shape& a, const Shape& b);
// dim in [-rank, rank) -> [0, rank); IndexError otherwise. Rank 0 counts as rank 1.
int64_t wrap_dim(int64_t dim, int64_t rank);

}  // namespace tg
