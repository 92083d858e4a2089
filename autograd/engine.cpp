#include "tapegrad/autograd/engine.h"

#include <algorithm>
#include <mutex>
#include <queue>

#include "tapegrad/autograd/engine_state.h"
#include "tapegrad/autograd/leaf_node.h"
#include "tapegrad/autograd/node_extras.h"
#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops/arithmetic.h"
#include "tapegrad/autograd/ops/comparison.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/reduction.h"

namespace tg {
namespace {

// From a node to its place in the list of those that were reached: open addressing, since this is
// looked up once per edge.
class NodeMap {
 public:
  // The index of the node; `fresh` if it was not known yet and gets it now.
  int find_or_add(Node* node, int fresh) {
    if (2 * (count_ + 1) > int(table_.size())) grow();
    size_t i = slot(node);
    if (!table_[i].node) {
      table_[i] = {node, fresh};
      ++count_;
    }
    return table_[i].index;
  }
  int find(Node* node) const {
    if (table_.empty()) return -1;
    size_t i = slot(node);
    return table_[i].node ? table_[i].index : -1;
  }

 private:
  struct Item {
    Node* node = nullptr;
    int index = 0;
  };
  size_t slot(Node* node) const {
    size_t mask = table_.size() - 1;
    size_t i = (reinterpret_cast<uintptr_t>(node) >> 4) * 0x9e3779b97f4a7c15ull >> 20 & mask;
    while (table_[i].node && table_[i].node != node) i = (i + 1) & mask;
    return i;
  }
  void grow() {
    std::vector<Item> old = std::move(table_);
    table_.assign(old.empty() ? 64 : old.size() * 2, Item{});
    for (const Item& item : old)
      if (item.node) table_[slot(item.node)] = item;
  }
  std::vector<Item> table_;
  int count_ = 0;
};

// Nobody else can see this memory: it may be added to.
bool is_private(const Tensor& t) {
  return t.ref().unique() && t.impl()->storage.unique() && is_dense(t.shape(), t.strides());
}

// Wanted gradients of tg::grad: of which edge, into which place of the result.
struct Target {
  Edge edge;
  size_t place;
};

class Run {
 public:
  Run(bool retain_graph, bool create_graph)
      : retain_graph_(retain_graph || create_graph), create_graph_(create_graph) {}

  void seed(const Edge& edge, Tensor gradient) { deliver(edge, std::move(gradient)); }

  // Restricts the run to what lies between the roots and the targets.
  void aim(std::vector<Target> targets, size_t places) {
    targets_ = std::move(targets);
    found_.resize(places);
    aimed_ = true;
    mark_wanted();
  }

  // Newest node first: all children of a node are newer, so its gradient is complete.
  std::vector<Tensor> run() {
    ThreadState state = thread_state;
    state.grad_mode = create_graph_;
    state.autocast = false;
    state.inference_mode = false;
    ThreadStateGuard guard(state);
    Edge outer = std::exchange(running_edge, {});
    bool outer_aimed = std::exchange(running_aimed, aimed_);
    try {
      while (!queue_.empty()) {
        int index = queue_.top().second;
        queue_.pop();
        step(index);
      }
    } catch (...) {
      running_edge = std::move(outer);
      running_aimed = outer_aimed;
      throw;
    }
    running_edge = std::move(outer);
    running_aimed = outer_aimed;
    return std::move(found_);
  }

 private:
  struct Reached {
    Ref<Node> node;
    Tensor gradient;           // of output 0
    std::vector<Tensor> more;  // of the others
    Tensor& of(int output) {
      if (output == 0) return gradient;
      if (more.empty()) more.resize(node->output_count - 1);
      return more[size_t(output - 1)];
    }
  };

  void deliver(const Edge& edge, Tensor gradient) {
    int index = map_.find_or_add(edge.node.get(), int(reached_.size()));
    if (index == int(reached_.size())) {
      reached_.push_back({edge.node, {}, {}});
      queue_.emplace(edge.node->id, index);
    }
    Tensor& sum = reached_[size_t(index)].of(edge.output);
    if (!sum.defined()) {
      sum = std::move(gradient);  // the first one moves in
    } else if (!create_graph_ && is_private(sum)) {
      add_(sum, gradient);
    } else {
      sum = add(sum, gradient);
    }
    // What the operators made during the run are gradients, until a closure keeps one.
    sum.impl()->storage->set_purpose(Purpose::gradient);
  }

  void step(int index) {
    Reached item = std::move(reached_[size_t(index)]);
    Node& node = *item.node;
    if (node.extras) run_output_hooks(node, item);
    if (aimed_) collect(item);
    if (node.is_leaf_node()) {
      if (!aimed_) accumulate(static_cast<LeafNode&>(node), item.gradient);
      return;
    }
    Needs needs(aimed_ ? wanted_inputs(node) : node.needs);
    const std::string* path =
        node.extras && !node.extras->path.empty() ? &node.extras->path : nullptr;
    Scope scope(node.op, path);
    running_edge = {item.node, 0};
    Grads grads;
    if (node.output_count == 1) {
      grads = node.backward(std::span<const Tensor>(&item.gradient, 1), needs);
    } else {
      std::vector<Tensor> dys;
      for (int i = 0; i < int(node.output_count); ++i) {
        const OutputInfo& info = node.info(i);
        Tensor dy = item.of(i);
        if (!dy.defined() && is_floating(info.dtype))
          dy = zeros(info.shape, {info.dtype, info.device});
        dys.push_back(std::move(dy));
      }
      grads = node.backward(dys, needs);
    }
    check<AutogradError>(grads.size() == node.inputs.size(), "the backward gave", grads.size(),
                         "gradients for", node.inputs.size(), "inputs");
    if (node.extras)
      for (auto& [id, hook] : node.extras->after) hook(node, grads);
    if (!retain_graph_) node.release();
    item.gradient = {};
    item.more.clear();
    for (size_t i = 0; i < grads.size(); ++i) {
      const Edge& edge = node.inputs[i];
      if (!edge || !grads[i].defined() || !needs[i]) continue;
      deliver(edge, fit(std::move(grads[i]), edge, i));
    }
  }

  // Checks a gradient against what it belongs to, and sums it down if it was broadcast.
  Tensor fit(Tensor g, const Edge& edge, size_t input) {
    const OutputInfo& info = edge.node->info(edge.output);
    if (!(g.device() == info.device)) [[unlikely]]
      fail<AutogradError>("the gradient of input", input, "is on", g.device(), "but the input on",
                          info.device);
    if (!(g.shape() == info.shape)) g = sum_to(g, info.shape);
    if (g.dtype() != info.dtype) [[unlikely]] {
      check<AutogradError>(g.is_floating(), "the gradient of input", input, "is of type",
                           g.dtype());
      g = cast(g, info.dtype);
    }
    if (thread_state.anomaly_mode) [[unlikely]]
      check_anomaly(g, input);
    return g;
  }

  void check_anomaly(const Tensor& g, size_t input) {
    NoGradGuard no_grad;
    AnomalyGuard off(false);
    if (g.numel() > 0 && all(isfinite(g)).item() == 0)
      fail<AutogradError>("made NaN or Inf in the gradient of input", input, "of shape", g.shape());
  }

  void run_output_hooks(Node& node, Reached& item) {
    auto hooks = node.extras->output_hooks;  // a hook may remove itself
    for (auto& on : hooks) {
      Tensor& g = item.of(on.output);
      if (!g.defined()) continue;
      Tensor changed = on.hook(g);
      if (!changed.defined()) continue;
      check<AutogradError>(changed.shape() == g.shape() && changed.dtype() == g.dtype(),
                           "a hook returned", changed, "for a gradient", g);
      g = changed;
    }
  }

  void accumulate(LeafNode& leaf, Tensor& g) {
    std::lock_guard lock(leaf.mutex);
    if (leaf.grad.defined()) {
      if (create_graph_)
        leaf.grad = add(leaf.grad, g);
      else
        add_(leaf.grad, g);
    } else {
      // The leaf owns its gradient: what somebody else can see, or shares places, is copied.
      leaf.grad = is_private(g) && !requires_grad(g) ? std::move(g) : clone(g);
    }
    leaf.grad.impl()->storage->set_purpose(Purpose::gradient);
  }

  void collect(Reached& item) {
    for (const Target& t : targets_)
      if (t.edge.node == item.node) found_[t.place] = item.of(t.edge.output);
  }

  // ---- tg::grad: which nodes lead to a target ----
  void mark_wanted() {
    std::vector<Node*> order, to_visit;
    NodeMap seen;
    for (const Reached& r : reached_) to_visit.push_back(r.node.get());
    while (!to_visit.empty()) {
      Node* node = to_visit.back();
      to_visit.pop_back();
      if (seen.find_or_add(node, int(order.size())) != int(order.size())) continue;
      order.push_back(node);
      for (const Edge& e : node->inputs)
        if (e && seen.find(e.node.get()) < 0) to_visit.push_back(e.node.get());
    }
    std::sort(order.begin(), order.end(), [](Node* a, Node* b) { return a->id < b->id; });
    for (Node* node : order) {
      bool wanted = false;
      for (const Target& t : targets_) wanted = wanted || t.edge.node.get() == node;
      for (const Edge& e : node->inputs) wanted = wanted || (e && wanted_.find(e.node.get()) >= 0);
      if (wanted) wanted_.find_or_add(node, 0);
    }
  }
  uint64_t wanted_inputs(const Node& node) const {
    uint64_t bits = 0;
    for (size_t i = 0; i < node.inputs.size() && i < 64; ++i)
      if (node.inputs[i] && wanted_.find(node.inputs[i].node.get()) >= 0) bits |= uint64_t(1) << i;
    return bits;
  }

  bool retain_graph_, create_graph_, aimed_ = false;
  NodeMap map_, wanted_;
  std::vector<Reached> reached_;
  std::priority_queue<std::pair<uint64_t, int>> queue_;
  std::vector<Target> targets_;
  std::vector<Tensor> found_;
};

void seed_roots(Run& run, const std::vector<Tensor>& roots, const std::vector<Tensor>& gradients) {
  check<ValueError>(gradients.empty() || gradients.size() == roots.size(), "got", gradients.size(),
                    "gradients for", roots.size(), "tensors");
  for (size_t i = 0; i < roots.size(); ++i) {
    const Tensor& root = roots[i];
    check<AutogradError>(root.defined(), "the tensor to differentiate is undefined");
    Edge edge = edge_of(root);
    check<AutogradError>(bool(edge),
                         "the tensor to differentiate has no history: nothing it was "
                         "computed from requires grad, or it was cut by detach() or NoGradGuard");
    Tensor g = gradients.empty() ? Tensor() : gradients[i];
    if (!g.defined()) {
      check<AutogradError>(root.numel() == 1,
                           "a gradient must be given for a tensor of more than one "
                           "element, shape",
                           root.shape());
      g = ones(root.shape(), root.options());
    }
    check<ShapeError>(g.shape() == root.shape(), "the gradient has shape", g.shape(),
                      "but the tensor", root.shape());
    check<DTypeError>(g.dtype() == root.dtype(), "the gradient is", g.dtype(), "but the tensor",
                      root.dtype());
    run.seed(edge, g);
  }
}

}  // namespace

void backward(const std::vector<Tensor>& roots, const std::vector<Tensor>& gradients,
              bool retain_graph, bool create_graph) {
  Scope scope("backward");
  Run run(retain_graph, create_graph);
  seed_roots(run, roots, gradients);
  run.run();
}

std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const GradOptions& options) {
  Scope scope("grad");
  Run run(options.retain_graph, options.create_graph);
  std::vector<Target> targets;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Edge edge = edge_of(inputs[i]);
    check<AutogradError>(bool(edge), "input", i, "does not require grad");
    targets.push_back({edge, i});
  }
  seed_roots(run, outputs, options.gradients);
  run.aim(targets, inputs.size());
  std::vector<Tensor> found = run.run();
  for (size_t i = 0; i < found.size(); ++i)
    check<AutogradError>(found[i].defined() || options.allow_unused,
                         "the outputs do not depend on input", i, "of shape", inputs[i].shape(),
                         "; pass allow_unused to get an undefined one");
  return found;
}

}  // namespace tg
