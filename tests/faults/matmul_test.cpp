// Matrix products that other engines got wrong.
#include <array>
#include <cmath>

#include "catch.h"
#include "tapegrad/autograd/ops.h"
#include "tapegrad/kernels/matmul.h"

using namespace tg;

namespace {

// Leaves NaN in the blocks that the allocator hands out next.
void dirty_memory(DType dtype = f32) {
  std::vector<Tensor> blocks;
  for (int64_t n = 1; n <= 4096; n *= 2) {
    for (int i = 0; i < 4; ++i) {
      blocks.push_back(dtype == f32 ? full({n}, NAN) : full({n}, 12345, TensorOptions(dtype)));
    }
  }
}

bool all_equal(const Tensor& x, double value) {
  for (double v : x.to_vector<double>()) {
    if (v != value) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("an empty inner dimension gives zeros", "[NUM-12]") {
  const Tensor a = zeros({3, 2, 0}), b = zeros({3, 0, 3});
  a.requires_grad_();
  b.requires_grad_();
  dirty_memory();
  const Tensor c = bmm(a, b);
  CHECK(c.shape() == Shape{3, 2, 3});
  CHECK(all_equal(c, 0));
  sum(c).backward();
  CHECK(a.grad().shape() == Shape{3, 2, 0});
  CHECK(b.grad().shape() == Shape{3, 0, 3});

  dirty_memory();
  CHECK(all_equal(matmul(zeros({4, 0}), zeros({0, 4})), 0));
  dirty_memory(i64);
  const Tensor whole = matmul(zeros({4, 0}, i64), zeros({0, 4}, i64));
  CHECK((whole.dtype() == i64 && whole.shape() == Shape{4, 4} && all_equal(whole, 0)));
  dirty_memory();
  CHECK(all_equal(matmul(zeros({5, 0}, bf16), zeros({0, 2}, bf16)), 0));
  CHECK(all_equal(matmul(zeros({5, 0}), zeros({0})), 0));
  CHECK(dot(zeros({0}), zeros({0})).item() == 0);

  const Tensor x = zeros({2, 0}), weight = zeros({2, 0}), bias = tensor({7, 8});
  for (const Tensor& t : {x, weight, bias}) t.requires_grad_();
  dirty_memory();
  const Tensor y = linear(x, weight, bias);
  CHECK(y.to_vector<double>() == std::vector<double>{7, 8, 7, 8});
  sum(y).backward();
  CHECK(x.grad().shape() == Shape{2, 0});
  CHECK(weight.grad().shape() == Shape{2, 0});
  CHECK(bias.grad().to_vector<double>() == std::vector<double>{2, 2});
}

TEST_CASE("what the result's memory held before does not matter", "[NUM-13]") {
  const auto over_nan = [](const Tensor& a, const Tensor& b) {
    const Tensor c = full({a.size(0), b.size(1)}, NAN, a.options());
    kernels::matmul(Cpu{}, a.read(), b.read(), c.write());
    return c;
  };
  const Tensor a = tensor({{1, 2}, {3, 4}}), b = tensor({{5, 6}, {7, 8}});
  CHECK(over_nan(a, b).to_vector<double>() == std::vector<double>{19, 22, 43, 50});
  for (DType dtype : {f32, f64, f16, bf16}) {
    for (auto [m, k, n] :
         {std::array<int64_t, 3>{17, 5, 19}, {1, 5, 19}, {17, 5, 1}, {40, 0, 33}}) {
      INFO(name_of(dtype) << " " << m << " " << k << " " << n);
      CHECK(all_equal(over_nan(ones({m, k}, dtype), ones({k, n}, dtype)), double(k)));
      CHECK(all_equal(over_nan(ones({m, k}, dtype), t(ones({n, k}, dtype))), double(k)));
    }
  }
  const Tensor nan = full({2, 2}, NAN);
  CHECK(addmm(nan, a, b, 0).to_vector<double>() == std::vector<double>{19, 22, 43, 50});
  CHECK(addmm(nan, a, b, 0, 2).to_vector<double>() == std::vector<double>{38, 44, 86, 100});
}

TEST_CASE("infinities and NaN pass through a product", "[matmul]") {
  // inf * 1 - 1, inf * 0 + 2, 0 * 1 - NaN, 0 * 0 + NaN: a zero does not hide what it multiplies.
  const Tensor a = tensor({{INFINITY, 1}, {0, NAN}}), b = tensor({{1, 0}, {-1, 2}});
  for (DType dtype : {f32, f64, f16, bf16}) {
    const std::vector<double> c = matmul(a.to(dtype), b.to(dtype)).to_vector<double>();
    CHECK(std::isinf(c[0]));
    for (int i = 1; i < 4; ++i) CHECK(std::isnan(c[i]));
  }
}
