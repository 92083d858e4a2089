// The kernels of optimizers and clipping on device cuda against the CPU's, which tests/optim holds
// against PyTorch.
#include <cmath>
#include <limits>

#include "cuda/flavour.h"
#include "ops/compare.h"
#include "tapegrad/kernels/optim.h"

using namespace tg;
using namespace tg::test;

namespace {

// More tensors than one launch takes, of sizes around the chunk of a block; two dtypes in turns.
std::vector<Tensor> many(DType first, DType second, int seed) {
  std::vector<Tensor> all;
  for (int k = 0; k < 60; ++k) {
    const int64_t n = k == 7 ? 16385 : k == 30 ? 0 : k == 59 ? 40000 : 1 + 13 * k;
    Tensor i = arange(Scalar(seed + k), Scalar(seed + k + n), Scalar(1), f64);
    all.push_back(cast(sin(i * 1.7), k < 55 ? first : second));
  }
  return all;
}
std::vector<Tensor> zeros_like(const std::vector<Tensor>& x) {
  std::vector<Tensor> all;
  for (const Tensor& t : x) all.push_back(tg::zeros_like(t));
  return all;
}
std::vector<Tensor> there(const std::vector<Tensor>& x) {
  std::vector<Tensor> all;
  for (const Tensor& t : x) all.push_back(t.to(kGpu));
  return all;
}

void check_equal(const std::vector<Tensor>& got, const std::vector<Tensor>& expected) {
  for (size_t k = 0; k < got.size(); ++k) {
    INFO("tensor " << k);
    CHECK(difference(got[k].to(kCpuDevice), cast(expected[k], f64), expected[k].dtype(), 4) == "");
  }
}

// The same steps here and there; `step(device tag, parameters, gradients, first state, second)`.
template <class Step>
void check_steps(DType first, DType second, Step step) {
  std::vector<Tensor> p = many(first, second, 1), m = zeros_like(p), v = zeros_like(p);
  std::vector<Tensor> p_gpu = there(p), m_gpu = there(m), v_gpu = there(v);
  for (int n = 1; n <= 3; ++n) {
    std::vector<Tensor> g = many(first, second, 10 * n), g_gpu = there(g);
    step(Cpu{}, n, p, g, m, v);
    step(Cuda{}, n, p_gpu, g_gpu, m_gpu, v_gpu);
  }
  for (auto [name, there, here] : {std::tuple{"parameter", &p_gpu, &p},
                                   {"first state", &m_gpu, &m},
                                   {"second state", &v_gpu, &v}}) {
    INFO(name);
    check_equal(*there, *here);
  }
}

constexpr DType kPairs[][2] = {{f32, f64}, {f16, bf16}};

}  // namespace

TEST_CASE("cuda: sgd steps as on the CPU", "[cuda]") {
  const kernels::SgdRule rules[] = {{0.1, 0, 0, 0, false, false},
                                    {0.1, 0.9, 0, 0.01, false, false},
                                    {0.1, 0.9, 0.5, 0, false, true},
                                    {0.1, 0.9, 0, 0.01, true, false}};
  in_every_order([&] {
    for (auto [first, second] : kPairs)
      for (const kernels::SgdRule& rule : rules) {
        INFO(name_of(first) << " momentum " << rule.momentum << " nesterov " << rule.nesterov);
        check_steps(first, second, [&](auto device, int n, auto& p, auto& g, auto& m, auto&) {
          std::vector<kernels::SgdEntry> entries;
          for (size_t k = 0; k < p.size(); ++k)
            // Every third tensor meets its first gradient one step later.
            entries.push_back({p[k].write(), g[k].read(),
                               rule.momentum > 0 ? m[k].write() : MutView(),
                               n <= (k % 3 == 0 ? 2 : 1)});
          kernels::sgd(device, entries, rule);
        });
      }
  });
}

TEST_CASE("cuda: adam steps as on the CPU", "[cuda]") {
  const kernels::AdamRule rules[] = {{0.01, 0.9, 0.999, 1e-8, 0, false, false},
                                     {0.01, 0.8, 0.99, 1e-4, 0.1, false, true},
                                     {0.01, 0.9, 0.999, 1e-8, 0.1, true, false}};
  in_every_order([&] {
    for (auto [first, second] : kPairs)
      for (const kernels::AdamRule& rule : rules) {
        INFO(name_of(first) << " decoupled " << rule.decoupled << " decay " << rule.weight_decay);
        check_steps(first, second, [&](auto device, int n, auto& p, auto& g, auto& m, auto& v) {
          std::vector<kernels::AdamEntry> entries;
          for (size_t k = 0; k < p.size(); ++k)
            entries.push_back({p[k].write(), g[k].read(), m[k].write(), v[k].write(),
                               n + int64_t(k % 2)});  // not all have made the same number of steps
          kernels::adam(device, entries, rule);
        });
      }
  });
}

TEST_CASE("cuda: norms, scaling and limits of gradients as on the CPU", "[cuda]") {
  in_every_order([] {
    for (auto [first, second] : kPairs) {
      std::vector<Tensor> here = many(first, second, 3), gpu = there(here);
      std::vector<View> x, y;
      std::vector<MutView> x_out, y_out;
      for (size_t k = 0; k < here.size(); ++k) {
        x.push_back(here[k].read());
        y.push_back(gpu[k].read());
        x_out.push_back(here[k].write());
        y_out.push_back(gpu[k].write());
      }
      for (double power : {1.0, 2.0, 2.5})
        CHECK(kernels::sum_of_powers(Cuda{}, y, power) ==
              Approx(kernels::sum_of_powers(Cpu{}, x, power)).epsilon(1e-13));
      CHECK(kernels::largest_magnitude(Cuda{}, y) == kernels::largest_magnitude(Cpu{}, x));
      kernels::scale(Cpu{}, x_out, -1.75);
      kernels::scale(Cuda{}, y_out, -1.75);
      check_equal(gpu, here);
      kernels::limit(Cpu{}, x_out, 0.5);
      kernels::limit(Cuda{}, y_out, 0.5);
      check_equal(gpu, here);
      CHECK(kernels::largest_magnitude(Cuda{}, y) == 0.5);
      fill_(slice(gpu[59], 0, 39999, 40000), Scalar(std::nan("")));
      CHECK(std::isnan(kernels::largest_magnitude(Cuda{}, y)));
      CHECK(std::isnan(kernels::sum_of_powers(Cuda{}, y, 2)));
    }
    CHECK(kernels::largest_magnitude(Cuda{}, {}) == 0);
  });
}
