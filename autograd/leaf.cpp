// The members of Tensor that concern its place on the tape, and the hooks.
#include <mutex>

#include "tapegrad/autograd/leaf_node.h"
#include "tapegrad/autograd/node_extras.h"
#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops/arithmetic.h"

namespace tg {

const Tensor& Tensor::requires_grad_(bool value) const {
  check(defined(), "requires_grad_ on an undefined tensor");
  if (value)
    check<DTypeError>(is_floating(), "only float tensors can require grad, this is", *this);
  bool now = tg::requires_grad(*this);
  if (now == value) return *this;
  check<AutogradError>(!now || is_leaf(), "only a leaf can stop requiring grad; use detach()");
  check<AutogradError>(
      !value || !impl_->inference,
      "a tensor made under InferenceGuard cannot require grad; clone() it outside");
  Meta& meta = need_meta(*this);
  if (value) {
    auto node = Ref<Node>::adopt(new LeafNode);
    node->op = "leaf";
    node->output = info_of(*this);
    meta.edge = {std::move(node), 0};
    meta.is_leaf = true;
  } else {
    meta.edge = {};
    meta.is_leaf = false;
  }
  return *this;
}

bool Tensor::requires_grad() const { return defined() && tg::requires_grad(*this); }

bool Tensor::is_leaf() const {
  const Meta* meta = meta_of(*this);
  return !tg::requires_grad(*this) || (meta && meta->is_leaf);
}

Tensor Tensor::grad() const {
  const Meta* meta = meta_of(*this);
  if (!meta) return {};
  if (meta->is_leaf) {
    auto& leaf = static_cast<LeafNode&>(*meta->edge.node);
    std::lock_guard lock(leaf.mutex);
    return leaf.grad;
  }
  return meta->retained_slot ? *meta->retained_slot : Tensor();
}

void Tensor::set_grad(const Tensor& g) const {
  const Meta* meta = meta_of(*this);
  check<AutogradError>(meta && (meta->is_leaf || meta->retained_slot),
                       "set_grad on a tensor that keeps no gradient");
  if (g.defined()) {
    check<ShapeError>(g.shape() == shape(), "the gradient has shape", g.shape(), "but the tensor",
                      shape());
    check<DTypeError>(g.dtype() == dtype(), "the gradient is", g.dtype(), "but the tensor",
                      dtype());
    check<DeviceError>(g.device() == device(), "the gradient is on", g.device(),
                       "but the tensor on", device());
    g.impl()->storage->set_purpose(Purpose::gradient);
  }
  if (!meta->is_leaf) {
    *meta->retained_slot = g;
    return;
  }
  auto& leaf = static_cast<LeafNode&>(*meta->edge.node);
  std::lock_guard lock(leaf.mutex);
  leaf.grad = g;
}

void Tensor::retain_grad() const {
  check<AutogradError>(requires_grad(), "retain_grad on a tensor that does not require grad");
  if (is_leaf() || meta_of(*this)->retained_slot) return;
  auto slot = std::make_shared<Tensor>();
  meta_of(*this)->retained_slot = slot;
  register_hook(*this, [slot](const Tensor& g) {
    *slot = slot->defined() ? Tensor(*slot + g) : g;
    return Tensor();
  });
}

void Tensor::backward(const Tensor& gradient, bool retain_graph, bool create_graph) const {
  tg::backward({*this}, {gradient}, retain_graph, create_graph);
}

Tensor Tensor::detach() const {
  check(defined(), "detach of an undefined tensor");
  return alias(*this, shape(), strides(), offset());
}

namespace {
std::atomic<uint64_t> next_hook_id{1};
}

HookHandle register_hook(const Tensor& x, TensorHook hook) {
  check<AutogradError>(x.requires_grad(),
                       "a hook on a tensor that does not require grad never runs");
  Edge edge = edge_of(x);
  uint64_t id = next_hook_id.fetch_add(1, std::memory_order_relaxed);
  edge.node->need_extras().output_hooks.push_back({edge.output, id, std::move(hook)});
  return HookHandle([node = edge.node, id] {
    std::erase_if(node->need_extras().output_hooks, [id](const auto& h) { return h.id == id; });
  });
}

HookHandle register_node_hook(const Tensor& x, NodeHook hook) {
  check<AutogradError>(x.requires_grad() && !x.is_leaf(),
                       "a node hook needs a tensor that a recorded operator made");
  Ref<Node> node = edge_of(x).node;
  uint64_t id = next_hook_id.fetch_add(1, std::memory_order_relaxed);
  node->need_extras().after.emplace_back(id, std::move(hook));
  return HookHandle([node, id] {
    std::erase_if(node->need_extras().after, [id](const auto& h) { return h.first == id; });
  });
}

std::string tape_text(const Tensor& x, int most) {
  std::string text;
  std::vector<std::pair<Node*, int>> to_visit;
  if (Edge edge = edge_of(x)) to_visit.emplace_back(edge.node.get(), 0);
  for (int lines = 0; !to_visit.empty() && lines < most; ++lines) {
    auto [node, depth] = to_visit.back();
    to_visit.pop_back();
    text +=
        std::string(size_t(2 * depth), ' ') + node->op + " " + to_text(node->output.shape) + "\n";
    for (auto e = node->inputs.rbegin(); e != node->inputs.rend(); ++e)
      if (*e) to_visit.emplace_back(e->node.get(), depth + 1);
  }
  if (!to_visit.empty()) text += "...\n";
  return text;
}

}  // namespace tg
