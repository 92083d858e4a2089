#include <limits>

#include "tapegrad/autograd/geometry.h"
#include "tapegrad/autograd/grad_mode.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/views.h"
#include "tapegrad/autograd/selection.h"
#include "tapegrad/core/scope.h"

namespace tg {
namespace {

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

// Dimensions of x that an entry uses up.
int64_t dims_used(const Index& entry) {
  if (entry.kind == Index::Kind::none || entry.kind == Index::Kind::ellipsis) return 0;
  const Tensor& t = entry.tensor;
  return t.defined() && t.dtype() == DType::boolean ? t.dim() : 1;
}

// Takes the entries one by one, turning x into the view and collecting index tensors.
class Resolver {
 public:
  explicit Resolver(const Tensor& x) : x_(x), v_(x) {}

  Indexed run(const std::vector<Index>& entries) {
    int64_t used = 0, ellipses = 0;
    for (const Index& entry : entries) {
      used += dims_used(entry);
      ellipses += entry.kind == Index::Kind::ellipsis;
    }
    check<IndexError>(ellipses <= 1, "an index has at most one ellipsis");
    check<IndexError>(used <= x_.dim(), used, "dimensions are indexed, but the tensor has shape",
                      x_.shape());
    for (const Index& entry : entries) {
      switch (entry.kind) {
        case Index::Kind::integer:
          take(entry.integer);
          break;
        case Index::Kind::slice:
          take(entry.slice);
          break;
        case Index::Kind::none:
          v_ = unsqueeze(v_, dim_++);
          break;
        case Index::Kind::tensor:
          take(entry.tensor);
          break;
        case Index::Kind::ellipsis:
          dim_ += int(x_.dim() - used);
          name_ += int(x_.dim() - used);
          break;
      }
    }
    return {v_, selection()};
  }

 private:
  struct Column {
    int dim, name;
    Tensor indices;
  };

  void take(int64_t i) {
    int64_t n = v_.shape()[dim_];
    check<IndexError>(i >= -n && i < n, "index", i, "is out of range for dim", name_, "of size", n);
    v_ = select(v_, dim_, i);
    ++name_;
  }
  void take(const Slice& s) {
    bool whole = s.start.value_or(0) == 0 && !s.end && s.step == 1;
    if (!whole) v_ = slice(v_, dim_, s.start.value_or(0), s.end.value_or(kEnd), s.step);
    ++dim_;
    ++name_;
  }
  void take(const Tensor& t) {
    check(t.defined(), "an index tensor is undefined");
    check<DeviceError>(t.device() == x_.device(), "an index tensor is on", t.device(),
                       "but the tensor on", x_.device());
    if (t.dtype() == DType::boolean) return take_mask(t);
    check<DTypeError>(is_integral(t.dtype()), "an index tensor holds integers or bool, got",
                      t.dtype());
    if (t.dim() == 0) return take(t.item_int64());
    columns_.push_back({dim_++, name_++, cast(t, i64)});
  }
  void take_mask(const Tensor& mask) {
    for (int i = 0; i < mask.dim(); ++i)
      check<IndexError>(mask.shape()[i] == v_.shape()[dim_ + i], "a mask of shape", mask.shape(),
                        "does not fit dim", name_, "on of", x_.shape());
    Tensor places = nonzero(mask);
    if (mask.dim() == 0) {  // a new dimension of size 1 or 0
      v_ = unsqueeze(v_, dim_);
      columns_.push_back({dim_++, name_, zeros({places.size(0)}, {i64, x_.device()})});
    }
    for (int i = 0; i < mask.dim(); ++i)
      columns_.push_back({dim_++, name_++, select(places, 1, i)});
  }

  Selection selection() const {
    Selection s;
    if (columns_.empty()) return s;
    for (const Column& c : columns_) {
      s.shape = broadcast_shapes(s.shape, c.indices.shape());
      if (c.dim != columns_[0].dim + int(s.columns.size())) s.at = -1;
      s.columns.push_back({c.dim, {}, c.name});
    }
    // Side by side, the new dimensions stand where the indexed ones were; else in front.
    s.at = s.at < 0 ? 0 : columns_[0].dim;
    for (size_t k = 0; k < columns_.size(); ++k) {
      Tensor flat = reshape(expanded(columns_[k].indices, s.shape), {s.shape.numel()});
      s.columns[k].indices = Saved::plain(flat);
    }
    return s;
  }

  const Tensor& x_;
  Tensor v_;
  int dim_ = 0;   // next dimension of v_
  int name_ = 0;  // ... which is this one of x_
  std::vector<Column> columns_;
};

}  // namespace

Indexed resolve(const Tensor& x, const std::vector<Index>& indices) {
  check(x.defined(), "the tensor is undefined");
  return Resolver(x).run(indices);
}

}  // namespace tg
