// Reductions over every set of dimensions of many layouts, against loops in double.
#include "tapegrad/kernels/reduce.h"

#include <cmath>
#include <cstring>
#include <random>

#include "catch.h"
#include "tapegrad/autograd/ops.h"
#include "tapegrad/core/parallel.h"

using namespace tg;
using kernels::Reduce;

namespace {

// Sums of whole numbers are exact in any order, so the comparison is, too.
void check_sum(const Tensor& x, uint32_t dims) {
  Shape kept = x.shape();
  for (int d = 0; d < kept.rank(); ++d)
    if (dims >> d & 1) kept[d] = 1;
  Tensor y = empty(kept, x.options());
  kernels::reduce(Cpu{}, Reduce::sum, x.read(), y.write());
  std::vector<double> v = x.to_vector<double>(), right(size_t(kept.numel()), 0.0);
  for (size_t i = 0; i < v.size(); ++i) {
    int64_t rest = int64_t(i), at = 0, step = 1;
    for (int d = kept.rank() - 1; d >= 0; --d) {
      int64_t index = rest % x.shape()[d];
      rest /= x.shape()[d];
      if (!(dims >> d & 1)) at += index * step;
      step *= kept[d];
    }
    right[size_t(at)] += v[i];
  }
  INFO(to_text(x) << " strides " << to_text(x.strides()) << " dims " << dims);
  REQUIRE(y.to_vector<double>() == right);
}

Tensor numbers(const Shape& shape, DType dtype) {
  std::vector<double> v(size_t(shape.numel()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = double(i * 7 % 5) - 1;
  return cast(tensor(v, shape), dtype);
}

}  // namespace

TEST_CASE("sums over any dimensions of any layout", "[kernels][reduce]") {
  for (DType dtype : {f32, f64, bf16, i64})
    for (Shape shape : {Shape{3, 4, 5}, Shape{2, 3, 1, 7}, Shape{40, 3}, Shape{3, 40}, Shape{5},
                        Shape{2, 0, 3}, Shape{4, 33, 2}, Shape{100, 2, 3}}) {
      if (dtype == bf16 && shape.numel() > 130) continue;  // the sums must be exact
      Tensor x = numbers(shape, dtype);
      std::vector<int64_t> turned;
      for (int64_t d = x.dim() - 1; d >= 0; --d) turned.push_back(d);
      Shape twice = shape;
      twice[twice.rank() - 1] *= 2;
      Tensor gaps = slice(numbers(twice, dtype), -1, 0, twice.back(), 2);
      for (const Tensor& t : {x, permute(x, turned), gaps, permute(gaps, turned)})
        for (uint32_t dims = 0; dims < uint32_t(1) << x.dim(); ++dims) check_sum(t, dims);
    }
}

TEST_CASE("sums of larger shapes: slices, tiles of columns, folded rows", "[kernels][reduce]") {
  for (Shape shape : {Shape{70000, 3}, Shape{3, 70000}, Shape{300, 700}, Shape{100, 30, 40},
                      Shape{9000, 9}, Shape{2000, 150}, Shape{200000}})
    for (DType dtype : {f32, f64, i32}) {
      Tensor x = numbers(shape, dtype == i32 ? f32 : dtype);
      for (uint32_t dims = 0; dims < uint32_t(1) << x.dim(); ++dims) check_sum(x, dims);
    }
}

TEST_CASE("sums of any floats have the same bits for any number of threads", "[kernels][reduce]") {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  int before = num_threads();
  for (Shape shape : {Shape{200000}, Shape{70000, 3}, Shape{3, 70000}, Shape{3000, 100}}) {
    std::vector<float> v(size_t(shape.numel()));
    for (float& f : v) f = normal(random);
    Tensor x = tensor(v, shape);
    for (uint32_t dims = 1; dims < uint32_t(1) << x.dim(); ++dims) {
      Shape kept = shape;
      for (int d = 0; d < kept.rank(); ++d)
        if (dims >> d & 1) kept[d] = 1;
      std::vector<float> first;
      for (int threads : {1, 2, 3, 7}) {
        set_num_threads(threads);
        Tensor y = empty(kept);
        kernels::reduce(Cpu{}, Reduce::sum, x.read(), y.write());
        std::vector<float> bits = y.to_vector<float>();
        if (threads == 1) first = bits;
        REQUIRE(bits == first);
      }
      // ... and are right: against double, to a few units of the sum of sizes.
      double total = 0, size = 0, got = 0;
      for (float f : v) {
        total += double(f);
        size += std::abs(double(f));
      }
      for (float f : first) got += double(f);
      CHECK(std::abs(got - total) <= 1e-7 * size);
    }
  }
  set_num_threads(before);
}

TEST_CASE("largest and smallest of every dtype", "[kernels][reduce]") {
  for (DType dtype : {f32, f64, f16, bf16, i8, i16, i32, i64, u8, boolean})
    for (int64_t n : {1, 7, 100, 5000}) {
      Tensor x = zeros({n}, dtype);
      fill_(select(x, 0, n / 2), 1);
      CHECK(max(x).item() == 1);
      CHECK(min(x).item() == (n == 1 ? 1 : 0));
    }
}

TEST_CASE("running sums along each dimension", "[kernels][reduce]") {
  Tensor x = numbers({6, 70, 5}, f32);
  for (const Tensor& t : {x, permute(x, {2, 0, 1}), slice(x, 1, 1, 70, 3)})
    for (int64_t dim = 0; dim < 3; ++dim) {
      Tensor y = cumsum(t, dim), total = zeros_like(select(t, dim, 0));
      for (int64_t k = 0; k < t.size(dim); ++k) {
        total = total + select(t, dim, k);
        REQUIRE(equal(select(y, dim, k), total));
      }
    }
}
