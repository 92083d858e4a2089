// A tensor kept for the backward. The capture list of a backward is its memory cost: only what is
// Saved is kept.
#pragma once
#include "tapegrad/autograd/node.h"

namespace tg {

class Saved {
 public:
  Saved() = default;
  // An input of the operator, with its history, so that gradients of gradients flow through it.
  static Saved input(const Tensor& x);
  // An output. Kept without history (node and tensor would own each other); get() attaches it to
  // the node that is running, as output number `index`.
  static Saved output(const Tensor& y, int index = 0);
  // Any tensor that has no history (a mask, indices, statistics).
  static Saved plain(const Tensor& x) { return x.defined() ? Saved(x, Kind::plain) : Saved(); }

  // The tensor; undefined if none was saved. Raises AutogradError if it was changed in place
  // since, with the operator, both versions and the shape.
  Tensor get() const;
  bool defined() const { return bool(storage_); }

 private:
  enum class Kind : uint8_t { plain, input, output };
  Saved(const Tensor& x, Kind kind);
  // A description instead of a Tensor: holding the tensor could close a cycle when an in-place
  // operator later gives it a newer history.
  Ref<Storage> storage_;
  Shape shape_, strides_;
  int64_t offset_ = 0;
  DType dtype_ = DType::f32;
  Kind kind_ = Kind::plain;
  bool is_leaf_ = false;
  bool inference_ = false;
  uint32_t version_ = 0;
  int output_index_ = 0;
  Edge edge_;
};

}  // namespace tg
