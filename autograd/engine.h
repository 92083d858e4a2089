// Running the tape backwards, and what people ask of it.
#pragma once
#include <concepts>
#include <string>
#include <vector>

#include "tapegrad/core/function.h"
#include "tapegrad/core/tensor.h"

namespace tg {

struct Node;  // autograd/node.h

// Adds d(sum of roots * gradients)/d(leaf) to the grad() of every leaf that the roots depend on.
// A gradient may be left undefined for a root of one element (it is then 1). Saved tensors are
// freed unless retain_graph; with create_graph the gradients are recorded themselves
// (retain_graph is then implied), and lead back to their leaves: clear such a grad() with
// set_grad({}) when it has served, else leaf and history keep each other alive; tg::grad has no
// such circle. AutogradError if a root has no history.
void backward(const std::vector<Tensor>& roots, const std::vector<Tensor>& gradients = {},
              bool retain_graph = false, bool create_graph = false);

struct GradOptions {
  std::vector<Tensor> gradients = {};  // of the outputs; default ones for one-element outputs
  bool retain_graph = false;
  bool create_graph = false;
  bool allow_unused = false;  // an input that does not matter gives an undefined tensor
};
// Gradients of the outputs with respect to the inputs, returned instead of accumulated; only the
// part of the tape between them runs.
std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const GradOptions& options = {});
// One of one. It takes no braces, so grad({y}, {x}) is always the list above and grad({y}, {x})[0]
// a gradient, as in PyTorch, not the first row of one.
template <std::derived_from<Tensor> Y, std::derived_from<Tensor> X>
Tensor grad(const Y& output, const X& input, const GradOptions& options = {}) {
  return std::move(grad(std::vector<Tensor>{output}, {input}, options)[0]);
}

using TensorHook = Function<Tensor(const Tensor& gradient)>;  // undefined: unchanged
using NodeHook = Function<void(const Node& node, const std::vector<Tensor>& input_gradients)>;

// Undoes a registration; safe to call when the tensor is gone.
class HookHandle {
 public:
  HookHandle() = default;
  explicit HookHandle(Function<void()> remove) : remove_(std::move(remove)) {}
  void remove() {
    if (remove_) std::exchange(remove_, {})();
  }

 private:
  Function<void()> remove_;
};
// Runs on the gradient of x (summed over all uses) in each backward; may return a replacement of
// the same shape, or an undefined tensor to leave it.
HookHandle register_hook(const Tensor& x, TensorHook hook);
// Runs after the node that made x, with the gradients it computed for its inputs.
HookHandle register_node_hook(const Tensor& x, NodeHook hook);

// Nodes that exist in the process: tests of leaks look at it.
int64_t live_node_count();
// "MulBackward <- exp, leaf[2,3]": the operators behind x, for people; at most `most` lines.
std::string tape_text(const Tensor& x, int most = 50);

}  // namespace tg
