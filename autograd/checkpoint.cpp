#include "tapegrad/autograd/checkpoint.h"

#include "tapegrad/autograd/engine.h"
#include "tapegrad/autograd/engine_state.h"
#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/core/random.h"

namespace tg {
namespace {

using Segment = Function<std::vector<Tensor>(const std::vector<Tensor>&)>;

// Puts the default generator back where it was for the first run, and afterwards to where the
// training had got.
class RandomReplay {
 public:
  RandomReplay(Device device, const RandomState& state)
      : generator_(default_generator(device)), later_(generator_.state()) {
    generator_.set_state(state);
  }
  ~RandomReplay() { generator_.set_state(later_); }
  RandomReplay(const RandomReplay&) = delete;
  RandomReplay& operator=(const RandomReplay&) = delete;

 private:
  Generator& generator_;
  RandomState later_;
};

}  // namespace

std::vector<Tensor> checkpoint(const Segment& fn, const std::vector<Tensor>& inputs) {
  Op op("checkpoint");
  for (const Tensor& x : inputs) op.in(x);
  if (!thread_state.grad_mode) return fn(inputs);
  Device device = inputs.empty() ? Device{} : inputs[0].device();
  RandomState random = default_generator(device).state();
  ThreadState modes = thread_state;
  std::vector<Tensor> outputs;
  {
    NoGradGuard no_grad;
    for (const Tensor& y : fn(inputs)) outputs.push_back(y.detach());
  }
  // fn may use parameters though no input requires grad, so it is always recorded: through an
  // input of no effect.
  Tensor always = zeros({}).requires_grad_();
  std::vector<Tensor> recorded = inputs;
  recorded.push_back(always);
  std::vector<Saved> saved;
  for (const Tensor& x : inputs) saved.push_back(Saved::input(x));

  auto backward_again = [fn, saved = std::move(saved), random, modes, device](
                            const Grads& dys, Needs needs) -> Grads {
    check<AutogradError>(!thread_state.grad_mode,
                         "second derivatives do not go through a checkpoint");
    check<AutogradError>(!running_aimed,
                         "tg::grad does not go through a checkpoint; use backward()");
    std::vector<Tensor> leaves, ys;
    for (size_t i = 0; i < saved.size(); ++i) {
      Tensor x = saved[i].get();
      leaves.push_back(needs[i] ? x.requires_grad_() : x);
    }
    {
      RandomReplay replay(device, random);
      ThreadState inside = thread_state;
      inside.grad_mode = true;
      inside.autocast = modes.autocast;
      inside.autocast_dtype = modes.autocast_dtype;
      ThreadStateGuard guard(inside);
      ys = fn(leaves);
    }
    check<AutogradError>(ys.size() == dys.size(), "the function returned", dys.size(),
                         "tensors the first time and", ys.size(), "now");
    std::vector<Tensor> roots, seeds;
    for (size_t i = 0; i < ys.size(); ++i)
      if (ys[i].requires_grad()) {
        roots.push_back(ys[i]);
        seeds.push_back(dys[i]);
      }
    if (!roots.empty()) backward(roots, seeds);
    Grads grads;
    for (const Tensor& x : leaves) grads.push_back(x.grad());
    grads.push_back({});
    return grads;
  };
  std::vector<Input> list(recorded.begin(), recorded.end());
  return op.record(std::move(outputs), list, std::move(backward_again));
}

Tensor checkpoint(const Function<Tensor(const Tensor&)>& fn, const Tensor& input) {
  return checkpoint([fn](const std::vector<Tensor>& x) { return std::vector<Tensor>{fn(x[0])}; },
                    std::vector<Tensor>{input})[0];
}

}  // namespace tg
