#include "tapegrad/autograd/ops/dropout.h"

#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/core/random.h"
#include "tapegrad/kernels/dropout.h"

namespace tg {
namespace {

// y = x / (1 - p) or 0    dx = the same of dy: nothing but the place in the random sequence is kept
Tensor apply(const Tensor& x, const kernels::Dropout& draw) {
  Op op("dropout");
  Tensor y = empty_like(x);
  on(x.device(), [&](auto device) { kernels::dropout(device, x.read(), y.write(), draw); });
  return op.record(y, {x}, [draw](const Tensor& dy, Needs) -> Grads { return {apply(dy, draw)}; });
}

}  // namespace

Tensor dropout(const Tensor& input, double p, bool training) {
  Op op("dropout");
  const Tensor x = op.in(input);
  check<ValueError>(p >= 0 && p <= 1, "p must be a probability in [0,1], got", p);
  check<DTypeError>(x.is_floating(), "works on floating point tensors, got", x.dtype());
  if (!training || p == 0) return x;
  return apply(x, {p, default_generator(x.device()).reserve(blocks_for(x.numel(), 4))});
}

}  // namespace tg
