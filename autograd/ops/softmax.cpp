#include "tapegrad/autograd/ops/softmax.h"

#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops/arithmetic.h"
#include "tapegrad/autograd/ops/reduction.h"
#include "tapegrad/autograd/ops/unary.h"
#include "tapegrad/kernels/softmax.h"

namespace tg {
namespace {

void check_float(const Tensor& x) {
  check<DTypeError>(x.is_floating(), "works on floating point tensors, got", x.dtype(),
                    "(convert it first, e.g. x.to(f32))");
}

// dx = y (dy - D)                         D = sum of dy y
// for a gradient g of dx:   towards y     g (dy - D) - dy sum(g y)
//                           towards dy    y (g - sum(g y)), which is this operator again
Tensor softmax_backward(const Tensor& y, const Tensor& dy, int64_t dim) {
  Op op("softmax_backward");
  Tensor dx = empty_like(y);
  on(y.device(),
     [&](auto device) { kernels::softmax_backward(device, y.read(), dy.read(), dx.write(), dim); });
  return op.record(
      dx, {y, dy},
      [y = Saved::input(y), dy = Saved::input(dy), dim](const Tensor& g, Needs needs) -> Grads {
        Tensor p = y.get(), d = dy.get(), to_y, to_dy;
        if (needs[0]) to_y = g * (d - sum(d * p, dim, true)) - d * sum(g * p, dim, true);
        if (needs[1]) to_dy = softmax_backward(p, g, dim);
        return {to_y, to_dy};
      });
}

// dx = dy - exp(y) sum(dy)
// for a gradient g of dx:   towards y     -g exp(y) sum(dy)
//                           towards dy    g - sum(g exp(y))
Tensor log_softmax_backward(const Tensor& y, const Tensor& dy, int64_t dim) {
  Op op("log_softmax_backward");
  Tensor dx = empty_like(y);
  on(y.device(), [&](auto device) {
    kernels::log_softmax_backward(device, y.read(), dy.read(), dx.write(), dim);
  });
  return op.record(
      dx, {y, dy},
      [y = Saved::input(y), dy = Saved::input(dy), dim](const Tensor& g, Needs needs) -> Grads {
        Tensor g_exp = g * exp(y.get()), to_y, to_dy;
        if (needs[0]) to_y = neg(g_exp * sum(dy.get(), dim, true));
        if (needs[1]) to_dy = g - sum(g_exp, dim, true);
        return {to_y, to_dy};
      });
}

}  // namespace

// y = exp(x - max) / sum    dx = y (dy - sum(dy y))
Tensor softmax(const Tensor& input, int64_t dim) {
  Op op("softmax", Cast::f32);
  Tensor x = op.in(input);
  check_float(x);
  dim = op.wrap_dim(dim, x);
  Tensor y = empty_like(x);
  on(x.device(), [&](auto device) { kernels::softmax(device, x.read(), y.write(), dim); });
  return op.record(y, {x}, [y = Saved::output(y), dim](const Tensor& dy, Needs) -> Grads {
    return {softmax_backward(y.get(), dy, dim)};
  });
}

// y = x - log(sum(exp(x)))    dx = dy - exp(y) sum(dy)
Tensor log_softmax(const Tensor& input, int64_t dim) {
  Op op("log_softmax", Cast::f32);
  Tensor x = op.in(input);
  check_float(x);
  dim = op.wrap_dim(dim, x);
  Tensor y = empty_like(x);
  on(x.device(), [&](auto device) { kernels::log_softmax(device, x.read(), y.write(), dim); });
  return op.record(y, {x}, [y = Saved::output(y), dim](const Tensor& dy, Needs) -> Grads {
    return {log_softmax_backward(y.get(), dy, dim)};
  });
}

}  // namespace tg
