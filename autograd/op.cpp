#include "tapegrad/autograd/op.h"

#include <algorithm>
#include <numeric>

#include "tapegrad/autograd/autocast.h"
#include "tapegrad/autograd/engine_state.h"
#include "tapegrad/autograd/inplace.h"
#include "tapegrad/autograd/node_extras.h"
#include "tapegrad/autograd/ops/comparison.h"
#include "tapegrad/autograd/ops/reduction.h"

namespace tg {
namespace {

// For anomaly mode.
bool all_finite(const Tensor& x) {
  if (!x.is_floating() || x.numel() == 0) return true;
  bool anomaly = std::exchange(thread_state.anomaly_mode, false);
  NoGradGuard no_grad;
  bool finite = all(isfinite(x)).item() != 0;
  thread_state.anomaly_mode = anomaly;
  return finite;
}

void fill_edges(Node& node, const char* op, std::span<const Input> inputs) {
  node.op = op;
  node.inputs.reserve(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& x = *inputs[i].tensor;
    node.inputs.push_back(x.defined() ? edge_of(x) : Edge{});
    const Edge& edge = node.inputs.back();
    if (!edge) continue;
    if (i < 64) node.needs |= uint64_t(1) << i;
    // A view whose base was written has just been viewed anew, by a node younger than this one; so
    // is the node of a leaf that is met for the first time.
    if (edge.node->id > node.id) node.renew_id();
  }
  if (thread_state.anomaly_mode) node.need_extras().path = module_path();
}

void check_output_is_new(const Tensor& y) {
  check<AutogradError>(!y.impl()->meta,
                       "the output that was recorded is on the tape already: compute it under "
                       "NoGradGuard, and return no input as it is");
}

// A gradient that is retained is that of the tensor as it is now.
void retain_anew(const Tensor& x, Meta& meta) {
  if (!meta.retained_slot) return;
  meta.retained_slot.reset();
  x.retain_grad();
}

}  // namespace

bool Op::recording(std::span<const Input> inputs) {
  if (!thread_state.grad_mode) return false;
  bool wanted = false, inference = false;
  for (const Input& in : inputs) {
    if (!in.tensor->defined()) continue;
    wanted = wanted || requires_grad(*in.tensor);
    inference = inference || in.tensor->impl()->inference;
  }
  if (wanted && inference)
    fail<AutogradError>(
        "a tensor made under InferenceGuard meets one that requires grad; clone() it "
        "outside of the guard first");
  return wanted;
}

Tensor Op::cast_input(const Tensor& x) const { return autocast_input(x, cast_); }

// An operator that makes NaN or Inf out of finite inputs is the first culprit.
void Op::check_finite(std::span<const Input> inputs, const Tensor& y) const {
  if (all_finite(y)) return;
  for (const Input& in : inputs)
    if (in.tensor->defined() && !all_finite(*in.tensor)) return;
  fail<AutogradError>("made NaN or Inf out of finite inputs, in an output of shape", y.shape());
}

void Op::attach(const Tensor& y, std::span<const Input> inputs, Node* fresh) const {
  auto node = Ref<Node>::adopt(fresh);
  check<AutogradError>(y.defined(), "the output that was recorded is undefined");
  check_output_is_new(y);
  check<AutogradError>(y.is_floating(), "an output of type", y.dtype(),
                       "has no gradient and cannot be recorded");
  fill_edges(*node, name_, inputs);
  node->output = info_of(y);
  auto* meta = new Meta;
  meta->edge = {std::move(node), 0};
  y.impl()->meta = meta;
}

void Op::attach(const std::vector<Tensor>& ys, std::span<const Input> inputs, Node* fresh) const {
  auto node = Ref<Node>::adopt(fresh);
  fill_edges(*node, name_, inputs);
  node->output_count = uint32_t(ys.size());
  for (size_t i = 0; i < ys.size(); ++i) {
    OutputInfo info = ys[i].defined() ? info_of(ys[i]) : OutputInfo{};
    if (i == 0)
      node->output = info;
    else
      node->more_outputs.push_back(info);
    if (!ys[i].defined() || !ys[i].is_floating()) continue;
    check_output_is_new(ys[i]);
    need_meta(ys[i]).edge = {node, int(i)};
  }
}

void Op::make_view(const Tensor& y, const Tensor& x) const {
  const Meta* meta = meta_of(x);
  if (!thread_state.grad_mode) {
    bool grad = meta && requires_grad(x);
    y.impl()->view_without_grad = grad ? 2 : std::max<uint8_t>(1, x.impl()->view_without_grad);
    return;
  }
  y.impl()->view_without_grad = x.impl()->view_without_grad;
  if (!y.is_floating() || x.impl()->inference) return;
  Meta& view = need_meta(y);
  view.base = meta && meta->base.defined() ? meta->base : x;
  view.view_version = y.version();
}

void Op::prepare_inplace(const Tensor& x, std::initializer_list<Input> others) const {
  check(x.defined(), "the tensor to write is undefined");
  check<ValueError>(!may_overlap_itself(x.shape(), x.strides()),
                    "cannot write in place: several elements of the tensor share one place, shape",
                    x.shape(), "strides", x.strides(), "; clone() it first");
  for (const Input& in : others) {
    const Tensor& other = *in.tensor;
    if (other.defined())
      check<ValueError>(
          !partly_overlap(x, other),
          "cannot write in place: the tensor shares part of its memory with an operand;"
          " clone() one of them first");
  }
  if (!thread_state.grad_mode) return;
  uint8_t view = x.impl()->view_without_grad;
  check<AutogradError>(
      view != 2,
      "a view that was made under no-grad of a tensor that requires grad is written "
      "with grad mode on; make the view outside, or write under NoGradGuard");
  const Meta* meta = meta_of(x);
  if (!meta) return;
  const Meta* owner = meta->base.defined() && !meta->is_leaf ? meta_of(meta->base) : meta;
  check<AutogradError>(!(owner && owner->is_leaf && owner->edge),
                       "a leaf that requires grad is written in place; do it under NoGradGuard, or "
                       "on a clone()");
}

void Op::rebase(const Tensor& x, std::span<const Input> inputs, Node* fresh) const {
  auto node = Ref<Node>::adopt(fresh);
  check<AutogradError>(x.impl()->view_without_grad == 0,
                       "a view that was made under no-grad takes part in a recorded in-place "
                       "operation; make the view outside of NoGradGuard");
  check<AutogradError>(!x.impl()->inference,
                       "a tensor made under InferenceGuard is written in a recorded operation");
  fill_edges(*node, name_, inputs);
  node->output = info_of(x);
  Meta& meta = need_meta(x);
  if (!meta.base.defined()) {
    meta.edge = {std::move(node), 0};
    meta.is_leaf = false;
    retain_anew(x, meta);
    return;
  }
  Tensor base = meta.base;
  Meta& base_meta = need_meta(base);
  base_meta.edge = {write_through_view(std::move(node), base, x), 0};
  meta.view_version = x.version() - 1;  // so that edge_of sees the view anew
  edge_of(x);
  retain_anew(base, base_meta);
  retain_anew(x, meta);
}

}  // namespace tg
