// An operator of your own, with its backward beside it, checked against differences.
#include <tapegrad/autograd/op.h>
#include <tapegrad/tapegrad.h>

#include <cstdio>

using namespace tg;

// y = x * tanh(softplus(x))    dy/dx = tanh(s) + x * sigmoid(x) * (1 - tanh(s)^2), s = softplus(x)
Tensor mish(const Tensor& input) {
  Op op("mish");
  Tensor x = op.in(input);
  Tensor y;
  {
    NoGradGuard no_grad;  // the backward below replaces what the parts would record
    y = x * tanh(softplus(x));
  }
  return op.record(y, {x}, [x = Saved::input(x)](const Tensor& dy, Needs) -> Grads {
    Tensor v = x.get(), t = tanh(softplus(v));
    return {dy * (t + v * sigmoid(v) * (1 - t * t))};
  });
}

int main() try {
  Tensor x = tensor({-2, -0.5, 0, 0.5, 2}, f64).requires_grad_();
  auto fn = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{mish(in[0])}; };
  gradcheck(fn, {x});
  gradgradcheck(fn, {x});
  sum(mish(x)).backward();
  for (double g : x.grad().to_vector<double>()) std::printf("%.6f\n", g);
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
