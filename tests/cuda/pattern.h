// Inputs for comparing device cuda with the CPU.
#pragma once
#include "cuda/flavour.h"
#include "ops/compare.h"
#include "tapegrad/core/random.h"

namespace tg::test {

// Values between -2 and 2 as the dtype has them.
inline Tensor pattern(const Shape& shape, int64_t seed, DType dtype) {
  manual_seed(uint64_t(seed));
  return cast(rand(shape, f64) * 4 - 2, dtype);
}

// The result of a formula and the gradients of its inputs there, in their dtype, against the
// CPU's in f64; the gradient that comes in is a pattern too.
template <class Formula>
void check_against_cpu(Formula formula, const std::vector<Tensor>& inputs, double ulps) {
  const DType dtype = inputs[0].dtype();
  const auto run = [&](DType t, Device device) {
    std::vector<Tensor> x, results;
    for (const Tensor& in : inputs) x.push_back(in.to(t).to(device).detach().requires_grad_());
    Tensor y = formula(x);
    y.backward(pattern(y.shape(), 5, dtype).to(t).to(device));
    results.push_back(y.detach().to(kCpuDevice));
    for (const Tensor& t : x) results.push_back(t.grad().to(kCpuDevice));
    return results;
  };
  const std::vector<Tensor> expected = run(f64, kCpuDevice), got = run(dtype, kGpu);
  INFO(name_of(dtype));
  for (size_t k = 0; k < got.size(); ++k) {
    INFO((k == 0 ? std::string("result") : "gradient of input " + std::to_string(k - 1)));
    CHECK(difference(got[k], expected[k], dtype, ulps) == "");
  }
}

}  // namespace tg::test
