// The tape: nodes and edges. A node is one recorded operator; its edges lead to the nodes that
// made its inputs. A node never holds its inputs, only what its backward says it needs.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "tapegrad/core/tensor.h"

namespace tg {

using Grads = std::vector<Tensor>;

// Which of the inputs' gradients are wanted; a backward may leave the others undefined.
class Needs {
 public:
  explicit Needs(uint64_t bits) : bits_(bits) {}
  bool operator[](size_t input) const { return input > 63 || (bits_ >> input & 1); }

 private:
  uint64_t bits_;
};

struct Node;
void destroy(Node* node);

// "The gradient of this tensor goes to output `output` of `node`." No node: no gradient wanted.
struct Edge {
  Ref<Node> node;
  int output = 0;
  explicit operator bool() const { return bool(node); }
};

// What the engine checks an incoming gradient against, and sums it down to.
struct OutputInfo {
  Shape shape;
  DType dtype = DType::f32;
  Device device;
};

struct NodeExtras;  // autograd/node_extras.h

struct Node : PooledObject {
  std::atomic<int32_t> refs{1};
  uint32_t output_count = 1;
  Node* next_dead = nullptr;  // chains are freed by a loop, see destroy()
  uint64_t id = 0;            // rising in the order of recording: inputs' nodes have lower ones
  uint64_t needs = 0;         // bit i: input i has an edge
  const char* op = "";        // name of the operator
  std::vector<Edge> inputs;
  OutputInfo output;                     // of output 0
  std::vector<OutputInfo> more_outputs;  // of outputs 1, 2, ...
  std::unique_ptr<NodeExtras> extras;    // things few nodes have

  Node();
  virtual ~Node();
  // Gradients with respect to the inputs, in their order; undefined where none flows.
  virtual Grads backward(std::span<const Tensor> output_gradients, Needs needs) = 0;
  // Frees what was saved; a backward that needs it raises afterwards.
  virtual void release() {}
  // Where gradients end: adds to the leaf's gradient instead of calling backward.
  virtual bool is_leaf_node() const { return false; }

  void renew_id();  // now the highest
  const OutputInfo& info(int i) const { return i == 0 ? output : more_outputs[size_t(i - 1)]; }
  NodeExtras& need_extras();
};

// The node of an operator whose backward is a closure: F(const Tensor& dy, Needs) -> Grads for one
// output, F(const Grads& dys, Needs) -> Grads for several.
[[noreturn]] void fail_released(const Node& node);
template <class F, bool kSingle>
struct ClosureNode final : Node {
  std::optional<F> closure;
  explicit ClosureNode(F&& f) : closure(std::move(f)) {}
  Grads backward(std::span<const Tensor> dys, Needs wanted) override {
    if (!closure) fail_released(*this);
    if constexpr (kSingle)
      return (*closure)(dys[0], wanted);
    else
      return (*closure)(Grads(dys.begin(), dys.end()), wanted);
  }
  // A closure of numbers and shapes has nothing to free: such a node may run again.
  void release() override {
    if constexpr (!std::is_trivially_destructible_v<F>) closure.reset();
  }
};

// What autograd hangs on a tensor.
struct Meta final : AutogradMeta, PooledObject {
  Edge edge;                              // set: requires grad
  bool is_leaf = false;                   // edge.node is then a LeafNode (autograd/leaf_node.h)
  std::shared_ptr<Tensor> retained_slot;  // retain_grad(): shared with the hook that fills it
  Tensor base;                            // set on a differentiable view: the tensor it views
  uint32_t view_version = 0;              // version of the storage when `edge` was made
};

inline Meta* meta_of(const Tensor& x) {
  if (!x.defined()) [[unlikely]]
    detail::fail_undefined();
  return static_cast<Meta*>(x.impl()->meta);
}
Meta& need_meta(const Tensor& x);
// Where the gradient of x goes. Rebuilds the edge of a view whose base was written since.
Edge edge_of(const Tensor& x);
// True if x has an edge (a view of a tensor that was rebased counts).
bool requires_grad(const Tensor& x);
OutputInfo info_of(const Tensor& x);

}  // namespace tg
