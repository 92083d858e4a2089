// The loop framework of elementwise kernels: layouts, dtypes, tails; and the packet maths against
// the C++ library in a wider type.
#include "tapegrad/kernels/cpu/elementwise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "catch.h"
#include "tapegrad/kernels/binary.h"
#include "tapegrad/kernels/copy.h"
#include "tapegrad/kernels/unary.h"

using namespace tg;

namespace {

template <class T>
struct Array {  // memory of a strided tensor, with guard values on both sides
  static constexpr int64_t kGuard = 8;
  Shape shape, strides;
  std::unique_ptr<T[]> owner;  // not a vector: that of bool has no addresses
  std::span<T> memory;
  Array(Shape s, Shape st) : shape(s), strides(st) {
    int64_t span = 1;
    for (int i = 0; i < s.rank(); ++i) span += (s[i] - 1) * st[i];
    owner = std::make_unique<T[]>(size_t(span + 2 * kGuard));
    memory = {owner.get(), size_t(span + 2 * kGuard)};
    for (T& v : memory) v = T(77);
  }
  explicit Array(Shape s) : Array(s, contiguous_strides(s)) {}
  MutView view() {
    return {{memory.data() + kGuard, dtype_of<T>(), &shape, &strides, shape.numel()}};
  }
  // Calls fn(element, flat index) in logical order.
  template <class F>
  void each(F fn) {
    Shape index = Shape::filled(shape.rank(), 0);
    for (int64_t n = 0; n < shape.numel(); ++n) {
      int64_t offset = kGuard;
      for (int i = 0; i < shape.rank(); ++i) offset += index[i] * strides[i];
      fn(memory[size_t(offset)], n);
      for (int i = shape.rank() - 1; i >= 0 && ++index[i] == shape[i]; --i) index[i] = 0;
    }
  }
};

// The element of a tensor of shape `small` that broadcasts to flat index n of `shape`.
int64_t broadcast_index(const Shape& shape, const Shape& small, int64_t n) {
  int64_t result = 0, step = 1;
  for (int i = shape.rank() - 1, j = small.rank() - 1; j >= 0; --i, --j) {
    if (small[j] != 1) result += n % shape[i] * step;
    n /= shape[i];
    step *= small[j];
  }
  return result;
}

template <class T>
void check_sum(const Shape& shape, const Shape& y_strides, const Shape& a_strides,
               const Shape& b_shape, const Shape& b_strides) {
  Array<T> a(shape, a_strides), b(b_shape, b_strides), y(shape, y_strides);
  a.each([](T& v, int64_t n) { v = T(float(n % 61)); });
  std::vector<float> right;
  b.each([&](T& v, int64_t n) {
    v = T(float(n % 3 * 64));
    right.push_back(float(v));
  });
  std::vector<T> before(y.memory.begin(), y.memory.end());
  kernels::binary(Cpu{}, functor::Add{}, a.view(), b.view(), y.view());
  y.each([&](T& v, int64_t n) {
    REQUIRE(float(v) == float(n % 61) + right[size_t(broadcast_index(shape, b_shape, n))]);
    v = T(77);
  });
  for (size_t i = 0; i < y.memory.size(); ++i) REQUIRE(float(y.memory[i]) == float(before[i]));
}

template <class T>
void check_sums() {
  for (Shape s : {Shape{3, 4, 5}, Shape{2, 70, 90}, Shape{33, 3, 140}}) {
    int64_t a = s[0], b = s[1], c = s[2];
    const Shape dense = contiguous_strides(s), flipped{1, a, a * b}, gaps{2 * b * c, 2 * c, 2},
                turned{b * c, 1, b};
    for (const Shape& y : {dense, flipped, gaps, turned})
      for (const Shape& x : {dense, flipped, gaps, turned}) {
        check_sum<T>(s, y, x, s, dense);
        check_sum<T>(s, y, x, s, turned);
        check_sum<T>(s, y, x, {c}, {1});
        check_sum<T>(s, y, x, {b, 1}, {3, 1});
        check_sum<T>(s, y, x, {}, {});
        check_sum<T>(s, y, x, {a, 1, c}, {c, c, 1});
      }
  }
}

template <class S>
double worst(const functor::Unary& f, double low, double high, long double (*right)(long double)) {
  const int64_t n = 200003;
  Array<S> x({n}), y({n});
  x.each([&](S& v, int64_t i) { v = S(low + (high - low) * double(i) / double(n - 1)); });
  kernels::unary(Cpu{}, f, x.view(), y.view());
  double most = 0;
  for (int64_t i = 0; i < n; ++i) {
    size_t at = size_t(i + Array<S>::kGuard);
    S want = S(right((long double)x.memory[at]));
    S got = y.memory[at];
    if (want == got) continue;
    S size = std::max(std::abs(want), std::numeric_limits<S>::min());
    double unit = double(std::nextafter(size, std::numeric_limits<S>::infinity()) - size);
    double error = std::abs(double(got) - double(want)) / unit;
    if (!(error <= most)) most = error;
  }
  return most;
}

template <class S>
S value(const functor::Unary& f, S x) {
  Array<S> in({5}), out({5});  // a tail
  for (S& v : in.memory) v = x;
  kernels::unary(Cpu{}, f, in.view(), out.view());
  return out.memory[Array<S>::kGuard + 4];
}

}  // namespace

TEST_CASE("sums over every pairing of layouts and broadcasts", "[kernels][elementwise]") {
  check_sums<float>();
  check_sums<double>();
  check_sums<BFloat16>();
  check_sums<int16_t>();
}

TEST_CASE("an element's bits do not depend on where it stands", "[kernels][elementwise]") {
  const int64_t n = 3 * 32768 + 13;
  Array<float> x({n}), y({n});
  x.each([](float& v, int64_t i) { v = float(i % 1000) * 0.01f - 5; });
  kernels::unary(Cpu{}, functor::GeluErf{}, x.view(), y.view());
  for (int64_t i = 1000; i < n; ++i)
    REQUIRE(y.memory[size_t(i + 8)] == y.memory[size_t(i % 1000 + 8)]);
}

TEST_CASE("packet functions are right to a few units in the last place", "[kernels][elementwise]") {
  using namespace functor;
  CHECK(worst<float>(Exp{}, -110, 90, std::exp) <= 1.5);
  CHECK(worst<double>(Exp{}, -750, 711, std::exp) <= 1.5);
  CHECK(worst<float>(Exp{}, -1, 1, std::exp) <= 1.5);
  CHECK(worst<double>(Exp{}, -1, 1, std::exp) <= 1.5);
  CHECK(worst<float>(Log{}, 0, 1e-36, std::log) <= 1.5);
  CHECK(worst<float>(Log{}, 0.001, 20, std::log) <= 1.5);
  CHECK(worst<double>(Log{}, 0.001, 20, std::log) <= 1.5);
  CHECK(worst<double>(Log{}, 0, 1e-306, std::log) <= 1.5);
  CHECK(worst<float>(Sqrt{}, 0, 10, std::sqrt) == 0);
  CHECK(worst<float>(Sqrt{}, 0, 1e-38, std::sqrt) == 0);
  CHECK(worst<float>(Tanh{}, -10, 10, std::tanh) <= 5);
  CHECK(worst<float>(Erf{}, -4, 4, std::erf) <= 6);
  CHECK(worst<float>(Expm1{}, -10, 10, std::expm1) <= 3);
  CHECK(worst<float>(Log1p{}, -0.9, 10, std::log1p) <= 3);
  CHECK(worst<float>(Sin{}, -50, 50, std::sin) <= 2);
  CHECK(worst<float>(Cos{}, -50, 50, std::cos) <= 2);
  auto cdf = [](long double v) { return erfcl(v * -0.70710678118654752440084L) / 2; };
  CHECK(worst<float>(NormalCdf{}, -13, 6, cdf) <= 6);
  // x / sqrt(2) is rounded, which the tail amplifies by x^2.
  CHECK(worst<double>(NormalCdf{}, -5, 8, cdf) <= 30);
}

TEST_CASE("packet functions at the ends", "[kernels][elementwise]") {
  using namespace functor;
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  CHECK(value<float>(Exp{}, -inf) == 0);
  CHECK(value<float>(Exp{}, inf) == inf);
  CHECK(std::isnan(value<float>(Exp{}, nan)));
  CHECK(value<double>(Exp{}, -INFINITY) == 0);
  CHECK(value<double>(Exp{}, 710) == double(inf));
  CHECK(value<float>(Exp{}, 0) == 1);
  CHECK(value<float>(Log{}, 0) == -inf);
  CHECK(value<float>(Log{}, inf) == inf);
  CHECK(std::isnan(value<float>(Log{}, -1)));
  CHECK(value<float>(Sigmoid{}, -inf) == 0);
  CHECK(value<float>(Sigmoid{}, inf) == 1);
  CHECK(value<float>(Softplus{}, 1000) == 1000);
  CHECK(value<float>(Softplus{}, -1000) == 0);
  CHECK(std::isnan(value<float>(Softplus{}, nan)));
  CHECK(std::isnan(value<float>(Tanh{}, nan)));
  CHECK(std::isnan(value<float>(GeluErf{}, nan)));
  CHECK(std::isnan(value<float>(GeluTanh{}, nan)));
  CHECK(value<float>(Round{}, 2.5f) == 2);
  CHECK(value<float>(Round{}, -0.5f) == 0);
  CHECK(value<float>(Floor{}, 1e30f) == 1e30f);
}

TEST_CASE("integers wrap around, and powers of integers are exact", "[kernels][elementwise]") {
  const int64_t n = 40;
  Array<int32_t> a({n}), b({n}), y({n});
  for (auto& v : a.memory) v = std::numeric_limits<int32_t>::max();
  for (auto& v : b.memory) v = 2;
  kernels::binary(Cpu{}, functor::Add{}, a.view(), b.view(), y.view());
  y.each([](int32_t v, int64_t) { CHECK(v == std::numeric_limits<int32_t>::min() + 1); });
  for (auto& v : a.memory) v = -3;
  kernels::binary(Cpu{}, functor::PowFrom{}, b.view(), a.view(), y.view());
  y.each([](int32_t v, int64_t) { CHECK(v == 9); });
  kernels::binary(Cpu{}, functor::Pow{}, b.view(), a.view(), y.view());  // 2^-3
  y.each([](int32_t v, int64_t) { CHECK(v == 0); });
}

TEST_CASE("comparisons, tests and choices", "[kernels][elementwise]") {
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  for (int64_t n : {3, 67}) {
    Array<float> a({n}), b({n}), y({n});
    Array<bool> c({n});
    a.each([&](float& v, int64_t i) { v = i % 3 == 0 ? nan : i % 3 == 1 ? 1.0f : inf; });
    b.each([&](float& v, int64_t) { v = 1; });
    kernels::compare(Cpu{}, kernels::Compare::ge, a.view(), b.view(), c.view());
    c.each([](bool v, int64_t i) { CHECK(v == (i % 3 != 0)); });
    kernels::compare(Cpu{}, kernels::Compare::ne, a.view(), Scalar(1), c.view());
    c.each([](bool v, int64_t i) { CHECK(v == (i % 3 != 1)); });
    kernels::where(Cpu{}, c.view(), b.view(), a.view(), y.view());
    y.each([](float v, int64_t) { CHECK(v == 1); });
    kernels::test(Cpu{}, kernels::Test::nan, a.view(), c.view());
    c.each([](bool v, int64_t i) { CHECK(v == (i % 3 == 0)); });
    kernels::test(Cpu{}, kernels::Test::finite, a.view(), c.view());
    c.each([](bool v, int64_t i) { CHECK(v == (i % 3 == 1)); });
  }
}

TEST_CASE("a formula of one's own", "[kernels][elementwise]") {
  Array<BFloat16> x({100}), y({100});
  x.each([](BFloat16& v, int64_t i) { v = BFloat16(float(i)); });
  kernels::map(
      Cpu{}, [](auto a) { return where(a > 50, a * 2, -a); }, y.view(), x.view());
  y.each([](BFloat16 v, int64_t i) { CHECK(float(v) == float(i > 50 ? 2 * i : -i)); });
}
