#include "tapegrad/autograd/node.h"

#include "tapegrad/autograd/node_extras.h"
#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops/views.h"

namespace tg {
namespace {

std::atomic<uint64_t> next_node_id{1};
std::atomic<int64_t> live_nodes{0};

// Nodes that have lost their last owner on this thread and wait for their turn.
struct DeadNodes {
  Node* first = nullptr;
  bool emptying = false;
};
constinit thread_local DeadNodes dead_nodes{};

}  // namespace

Node::Node() : id(next_node_id.fetch_add(1, std::memory_order_relaxed)) {
  live_nodes.fetch_add(1, std::memory_order_relaxed);
}

void Node::renew_id() { id = next_node_id.fetch_add(1, std::memory_order_relaxed); }

Node::~Node() { live_nodes.fetch_sub(1, std::memory_order_relaxed); }

NodeExtras& Node::need_extras() {
  if (!extras) extras = std::make_unique<NodeExtras>();
  return *extras;
}

// Deleting a node lets go of its parents, which may die in turn. Whoever drops the first node
// empties the list that the others are put on, so a chain of any length needs no deep stack.
void destroy(Node* node) {
  node->next_dead = dead_nodes.first;
  dead_nodes.first = node;
  if (dead_nodes.emptying) return;
  dead_nodes.emptying = true;
  while (Node* dead = dead_nodes.first) {
    dead_nodes.first = dead->next_dead;
    delete dead;
  }
  dead_nodes.emptying = false;
}

int64_t live_node_count() { return live_nodes.load(std::memory_order_relaxed); }

void fail_released(const Node& node) {
  fail<AutogradError>("the backward of", node.op,
                      "has run and freed what it saved; pass retain_graph to run it twice");
}

Meta& need_meta(const Tensor& x) {
  if (!x.impl()->meta) x.impl()->meta = new Meta;
  return *meta_of(x);
}

bool requires_grad(const Tensor& x) {
  const Meta* meta = meta_of(x);
  if (!meta) return false;
  if (meta->edge) return true;
  return meta->base.defined() && requires_grad(meta->base);  // a base is no view itself
}

Edge edge_of(const Tensor& x) {
  Meta* meta = meta_of(x);
  if (!meta) return {};
  // The base was written since the view's edge was made: see the view anew, over what the base is
  // now.
  if (meta->base.defined() && !meta->is_leaf && meta->view_version != x.version() &&
      requires_grad(meta->base)) {
    EnableGradGuard recording;
    meta->view_version = x.version();
    Tensor anew = as_strided(meta->base, x.shape(), x.strides(), x.offset());
    meta->edge = meta_of(anew)->edge;
  }
  return meta->edge;
}

OutputInfo info_of(const Tensor& x) { return {x.shape(), x.dtype(), x.device()}; }

}  // namespace tg
