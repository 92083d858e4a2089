// How an operator is written: it says who it is, checks its inputs, runs the kernel, and records
// the backward beside it.
//
//   // y = softmax(x)    dx = y * (dy - sum(dy * y))
//   Tensor softmax(const Tensor& input, int64_t dim) {
//     Op op("softmax", Cast::f32);
//     Tensor x = op.in(input);
//     dim = op.wrap_dim(dim, x);
//     Tensor y = empty_like(x);
//     on(x.device(), [&](auto device) { kernels::softmax(device, x.read(), y.write(), int(dim));
//     }); return op.record(y, {x}, [y = Saved::output(y), dim](const Tensor& dy, Needs) -> Grads {
//       Tensor s = y.get();
//       return {s * (dy - sum(dy * s, dim, /*keepdim=*/true))};
//     });
//   }
#pragma once
#include <initializer_list>

#include "tapegrad/autograd/grad_mode.h"
#include "tapegrad/autograd/saved.h"
#include "tapegrad/core/scope.h"

namespace tg {

// What an operator does with its float inputs under autocast: nothing; cast to the region's low
// precision; cast to f32; cast all to the widest among them.
enum class Cast : uint8_t { none, low, f32, widest };

// An input by reference: lists of inputs cost no counting.
struct Input {
  const Tensor* tensor;
  Input(const Tensor& t) : tensor(&t) {}
};

class Op {
 public:
  explicit Op(const char* name, Cast cast = Cast::none) : name_(name), cast_(cast), scope_(name) {}
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;

  // The input as the operator shall see it: defined, and cast under autocast (recorded).
  Tensor in(const Tensor& x) const {
    if (!x.defined()) [[unlikely]]
      fail("an input is undefined");
    if (thread_state.autocast && cast_ != Cast::none) [[unlikely]]
      return cast_input(x);
    return x;
  }
  int64_t wrap_dim(int64_t dim, const Tensor& x) const { return tg::wrap_dim(dim, x.dim()); }
  // Raises DeviceError unless all live on one device.
  void same_device(const Tensor& a, const Tensor& b) const {
    if (!(a.device() == b.device())) [[unlikely]]
      fail<DeviceError>("operands are on different devices:", a.device(), b.device());
  }

  // Attaches the backward to one output. F: (const Tensor& dy, Needs) -> Grads, one entry per
  // input in the order of `inputs`. Gradients may have the broadcast shape: the engine sums them.
  template <class F>
  Tensor record(Tensor y, std::initializer_list<Input> inputs, F backward) const {
    if (recording(inputs)) attach(y, span(inputs), new ClosureNode<F, true>(std::move(backward)));
    return finish(span(inputs), std::move(y));
  }
  template <class F>
  Tensor record(Tensor y, const std::vector<Tensor>& inputs, F backward) const {
    std::vector<Input> list(inputs.begin(), inputs.end());
    if (recording(list)) attach(y, list, new ClosureNode<F, true>(std::move(backward)));
    return finish(list, std::move(y));
  }
  template <class F>
  std::vector<Tensor> record(std::vector<Tensor> ys, const std::vector<Input>& inputs,
                             F backward) const {
    if (recording(inputs)) attach(ys, inputs, new ClosureNode<F, false>(std::move(backward)));
    for (const Tensor& y : ys) finish(inputs, y);
    return ys;
  }
  // Several outputs. F: (const Grads& dys, Needs) -> Grads; an output nobody used comes as zeros.
  // Integer outputs take no part.
  template <class F>
  std::vector<Tensor> record(std::vector<Tensor> ys, std::initializer_list<Input> inputs,
                             F backward) const {
    if (recording(inputs)) attach(ys, span(inputs), new ClosureNode<F, false>(std::move(backward)));
    for (const Tensor& y : ys) finish(span(inputs), y);
    return ys;
  }
  // An output that views the memory of inputs[0]: as record, and the view learns its base, so
  // that in-place changes through either give right gradients.
  template <class F>
  Tensor record_view(Tensor y, const Tensor& x, F backward) const {
    if (recording({x})) attach(y, span({x}), new ClosureNode<F, true>(std::move(backward)));
    make_view(y, x);
    return y;
  }

  // For operators that write into x: call before the kernel. Raises for a leaf that requires
  // grad, for expanded (overlapping) memory, for a view made under no-grad, and for any other
  // input that partly overlaps x. Other inputs may be x itself.
  void prepare_inplace(const Tensor& x, std::initializer_list<Input> others = {}) const;
  // ... and after the kernel. The first input is x as it was before; F as in record. What the
  // backward needs of the old x must have been copied before the kernel ran.
  template <class F>
  const Tensor& record_inplace(const Tensor& x, std::initializer_list<Input> inputs,
                               F backward) const {
    if (recording(inputs)) rebase(x, span(inputs), new ClosureNode<F, true>(std::move(backward)));
    finish(span(inputs), x);
    return x;
  }

  // A number that the caller gave: if it is infinite, infinities in the output are meant, and
  // anomaly mode lets them pass.
  void given(Scalar number) {
    double x = number.to_double();
    if (x - x != 0) nonfinite_given_ = true;  // infinite, or not a number
  }
  const char* name() const { return name_; }

 private:
  static std::span<const Input> span(std::initializer_list<Input> l) {
    return {l.begin(), l.size()};
  }
  static bool recording(std::span<const Input> inputs);
  static bool recording(std::initializer_list<Input> inputs) { return recording(span(inputs)); }
  Tensor cast_input(const Tensor& x) const;
  void attach(const Tensor& y, std::span<const Input> inputs, Node* node) const;
  void attach(const std::vector<Tensor>& ys, std::span<const Input> inputs, Node* node) const;
  void make_view(const Tensor& y, const Tensor& x) const;
  void rebase(const Tensor& x, std::span<const Input> inputs, Node* node) const;
  Tensor finish(std::span<const Input> inputs, Tensor y) const {
    if (thread_state.anomaly_mode && !nonfinite_given_) [[unlikely]]
      check_finite(inputs, y);
    return y;
  }
  void check_finite(std::span<const Input> inputs, const Tensor& y) const;

  const char* name_;
  Cast cast_;
  bool nonfinite_given_ = false;
  Scope scope_;
};

}  // namespace tg
