#include "tapegrad/autograd/saved.h"

#include "tapegrad/autograd/engine_state.h"
#include "tapegrad/core/thread_state.h"

namespace tg {

Saved::Saved(const Tensor& x, Kind kind)
    : storage_(x.impl()->storage),
      shape_(x.shape()),
      strides_(x.strides()),
      offset_(x.offset()),
      dtype_(x.dtype()),
      kind_(kind),
      inference_(x.impl()->inference),
      version_(x.version()) {
  if (storage_->purpose == Purpose::other) storage_->set_purpose(Purpose::saved);
}

// Without grad mode nothing will be recorded, so nothing needs to be kept.
Saved Saved::input(const Tensor& x) {
  if (!thread_state.grad_mode || !x.defined()) return {};
  Saved s(x, Kind::input);
  s.edge_ = edge_of(x);
  s.is_leaf_ = s.edge_ && s.edge_.node->is_leaf_node();
  return s;
}

Saved Saved::output(const Tensor& y, int index) {
  if (!thread_state.grad_mode || !y.defined()) return {};
  Saved s(y, Kind::output);
  s.output_index_ = index;
  return s;
}

Tensor Saved::get() const {
  if (!storage_) return {};
  uint32_t now = storage_->version.load(std::memory_order_relaxed);
  if (now != version_) [[unlikely]]
    fail<AutogradError>(
        "a tensor saved for the backward was changed in place: it was saved at version", version_,
        "and is now at version", now, ", shape", shape_, "; change a clone() instead");
  auto* impl = new TensorImpl;
  impl->dtype = dtype_;
  impl->inference = inference_;
  impl->storage = storage_;
  impl->offset = offset_;
  impl->shape = shape_;
  impl->strides = strides_;
  impl->numel = shape_.numel();
  Tensor x(Ref<TensorImpl>::adopt(impl));
  if (!thread_state.grad_mode) return x;
  // The gradients are being recorded themselves: give the tensor its history back.
  if (kind_ == Kind::input && edge_) {
    Meta& meta = need_meta(x);
    meta.edge = edge_;
    meta.is_leaf = is_leaf_;
  } else if (kind_ == Kind::output && running_edge) {
    need_meta(x).edge = {running_edge.node, running_edge.output + output_index_};
  }
  return x;
}

}  // namespace tg
