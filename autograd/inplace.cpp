#include "tapegrad/autograd/inplace.h"

#include <numeric>

#include "tapegrad/autograd/engine_state.h"
#include "tapegrad/autograd/geometry.h"
#include "tapegrad/autograd/grad_mode.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/views.h"

namespace tg {
namespace {

// Dimensions of size over 1, by rising stride.
int sorted_dims(const Shape& shape, const Shape& strides, int* order) {
  int n = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] <= 1) continue;
    int k = n++;
    for (; k > 0 && strides[order[k - 1]] > strides[i]; --k) order[k] = order[k - 1];
    order[k] = i;
  }
  return n;
}

// Whether shift = sum of steps[k] * stride[k] with |steps[k]| < size[k]. The smaller dimensions
// reach less than one stride, so only the two nearest multiples can be right at each dimension.
bool is_sum_of_steps(const Tensor& x, const int* order, int n, int64_t shift) {
  if (n == 0) return shift == 0;
  int64_t stride = x.strides()[order[n - 1]], size = x.shape()[order[n - 1]];
  int64_t down = shift / stride - (shift % stride < 0);
  for (int64_t steps : {down, down + 1})
    if (steps > -size && steps < size && is_sum_of_steps(x, order, n - 1, shift - steps * stride))
      return true;
  return false;
}

class WriteThroughView final : public Node {
 public:
  WriteThroughView(Ref<Node> inner, const Tensor& base, const Tensor& view)
      : inner_(std::move(inner)),
        base_shape_(base.shape()),
        base_strides_(base.strides()),
        view_shape_(view.shape()),
        view_strides_(view.strides()),
        view_offset_(view.offset() - base.offset()) {
    op = inner_->op;
    output = info_of(base);
    inputs = inner_->inputs;
    inputs[0] = edge_of(base);
    needs = inner_->needs & ~uint64_t(1);
    if (inputs[0]) needs |= 1;
    inner_->inputs.clear();  // this node leads on
  }

  // dy of the base, copied into memory laid out as the base's, so that the view's strides fit.
  Grads backward(std::span<const Tensor> dys, Needs wanted) override {
    Tensor flat = zeros({extent(base_shape_, base_strides_)}, dys[0].options());
    copy_(as_strided(flat, base_shape_, base_strides_, 0), dys[0]);
    Tensor part = as_strided(flat, view_shape_, view_strides_, view_offset_);
    Tensor inner_dy = clone(part);
    Edge outer = std::exchange(running_edge, view_edge());
    Grads grads;
    try {
      grads = inner_->backward(std::span<const Tensor>(&inner_dy, 1), wanted);
    } catch (...) {
      running_edge = std::move(outer);
      throw;
    }
    running_edge = std::move(outer);
    if (!wanted[0]) return grads;
    if (grads[0].defined())
      copy_(part, grads[0]);
    else
      fill_(part, 0);
    grads[0] = as_strided(flat, base_shape_, base_strides_, 0);
    return grads;
  }
  void release() override { inner_->release(); }

 private:
  // When gradients are recorded, an output that the inner operator saved is the view's value.
  Edge view_edge() {
    if (!thread_state.grad_mode) return {};
    Tensor base = empty_strided_base();
    need_meta(base).edge = running_edge;
    Tensor view = as_strided(base, view_shape_, view_strides_, view_offset_);
    return meta_of(view)->edge;
  }
  Tensor empty_strided_base() const {
    Tensor flat = empty({extent(base_shape_, base_strides_)}, {output.dtype, output.device});
    return alias(flat, base_shape_, base_strides_, 0);
  }

  Ref<Node> inner_;
  Shape base_shape_, base_strides_, view_shape_, view_strides_;
  int64_t view_offset_;
};

}  // namespace

bool may_overlap_itself(const Shape& shape, const Shape& strides) {
  if (is_contiguous(shape, strides)) return false;
  int order[kMaxRank];
  int n = sorted_dims(shape, strides, order);
  int64_t reach = 0;  // how far the smaller dimensions go
  for (int k = 0; k < n; ++k) {
    int64_t stride = strides[order[k]];
    if (stride <= reach) return true;
    reach += (shape[order[k]] - 1) * stride;
  }
  return false;
}

bool partly_overlap(const Tensor& x, const Tensor& y) {
  if (!x.shares_storage(y) || x.numel() == 0 || y.numel() == 0) return false;
  if (x.dtype() != y.dtype()) return true;
  bool same_layout = x.shape() == y.shape() && x.strides() == y.strides();
  int64_t shift = y.offset() - x.offset();
  if (same_layout && shift == 0) return false;
  if (shift >= extent(x.shape(), x.strides()) || -shift >= extent(y.shape(), y.strides()))
    return false;
  // They may interleave without meeting: two columns of a matrix lie a fraction of the common
  // stride apart.
  int64_t step = 0;
  for (const Tensor* t : {&x, &y})
    for (int i = 0; i < int(t->dim()); ++i)
      if (t->shape()[i] > 1) step = std::gcd(step, t->strides()[i]);
  if (step > 1 && shift % step != 0) return false;
  if (!same_layout || may_overlap_itself(x.shape(), x.strides())) return true;
  // Equal layouts, as those of two blocks of one matrix, meet if the shift is a sum of steps that
  // stay inside.
  int order[kMaxRank];
  int n = sorted_dims(x.shape(), x.strides(), order);
  return is_sum_of_steps(x, order, n, shift);
}

Ref<Node> write_through_view(Ref<Node> inner, const Tensor& base, const Tensor& view) {
  return Ref<Node>::adopt(new WriteThroughView(std::move(inner), base, view));
}

}  // namespace tg
