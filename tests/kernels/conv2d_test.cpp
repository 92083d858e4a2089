// Convolution and its adjoints against their definition: random shapes, strides, padding, dilation
// and groups, every memory layout, guards around the results, any number of threads.
#include "tapegrad/kernels/conv2d.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "catch.h"
#include "tapegrad/core/parallel.h"
#include "tapegrad/core/tensor.h"
#include "tapegrad/kernels/cpu/conv2d/reference.h"

using namespace tg;
using kernels::Conv2dGeometry;

namespace {

using Random = std::mt19937_64;

int64_t pick(Random& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

enum class Layout { rows, channels_last, gaps };

// A tensor whose elements do not fill its memory (gaps), or do, in one of two orders; the memory
// has 32 more elements at either end. Everything outside of the tensor holds 77.
template <class T>
Tensor make(const Shape& shape, Layout layout) {
  Shape strides =
      layout == Layout::channels_last ? channels_last_strides(shape) : contiguous_strides(shape);
  if (layout == Layout::gaps) {
    strides = {2 * shape[1] * (shape[2] + 1) * (shape[3] + 2) + 3,
               2 * (shape[2] + 1) * (shape[3] + 2), 2 * (shape[3] + 2), 2};
  }
  int64_t last = 0;
  for (int i = 0; i < 4; ++i) last += (shape[i] - 1) * strides[i];
  const int64_t size = shape.numel() == 0 ? 64 : last + 65;
  Tensor memory = empty({size}, dtype_of<T>());
  std::fill_n(memory.mutable_data<T>(), size, static_cast<T>(77));
  return alias(memory, shape, strides, 32);
}

template <class T, class F>
void for_each(const Tensor& x, F&& fn) {
  const Shape s = x.shape(), t = x.strides();
  T* data = x.write().as<T>();
  for (int64_t a = 0; a < s[0]; ++a)
    for (int64_t b = 0; b < s[1]; ++b)
      for (int64_t c = 0; c < s[2]; ++c)
        for (int64_t d = 0; d < s[3]; ++d) fn(data[a * t[0] + b * t[1] + c * t[2] + d * t[3]]);
}

template <class T>
Tensor numbers(Random& random, const Shape& shape, Layout layout) {
  Tensor x = make<T>(shape, layout);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for_each<T>(x, [&](T& value) { value = static_cast<T>(static_cast<float>(uniform(random))); });
  return x;
}

template <class T>
std::vector<double> values(const Tensor& x) {
  std::vector<double> list;
  for_each<T>(x, [&](T& v) {
    list.push_back(
        double(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(v)));
  });
  return list;
}

template <class T>
int64_t count_of_guards(const Tensor& x) {
  const T* data = static_cast<const T*>(x.impl()->storage->data);
  int64_t count = 0;
  for (size_t i = 0; i < x.impl()->storage->bytes / sizeof(T); ++i)
    count += double(static_cast<float>(data[i])) == 77;
  return count;
}

struct Case {
  int64_t n, ci, co, h, w, kh, kw;  // channels of one group
  Conv2dGeometry g;
  Layout x, weight, y;
};

std::string text(const Case& c) {
  std::string s;
  for (int64_t v : {c.n, c.ci, c.co, c.h, c.w, c.kh, c.kw, c.g.stride_h, c.g.stride_w,
                    c.g.padding_h, c.g.padding_w, c.g.dilation_h, c.g.dilation_w, c.g.groups,
                    int64_t(c.x), int64_t(c.weight), int64_t(c.y)})
    s += std::to_string(v) + " ";
  return s;
}

Shape result_shape(const Case& c) {
  return {c.n, c.co * c.g.groups,
          (c.h + 2 * c.g.padding_h - c.g.dilation_h * (c.kh - 1) - 1) / c.g.stride_h + 1,
          (c.w + 2 * c.g.padding_w - c.g.dilation_w * (c.kw - 1) - 1) / c.g.stride_w + 1};
}

template <class T>
struct Problem {
  Tensor x, weight, bias, y;
  Problem(const Case& c, uint64_t seed) {
    Random random(seed);
    x = numbers<T>(random, {c.n, c.ci * c.g.groups, c.h, c.w}, c.x);
    weight = numbers<T>(random, {c.co * c.g.groups, c.ci, c.kh, c.kw}, c.weight);
    y = numbers<T>(random, result_shape(c), c.y);
    bias = alias(numbers<T>(random, {1, 1, 1, c.co * c.g.groups}, Layout::rows),
                 {c.co * c.g.groups}, {1}, 32);
  }
};

// The largest difference, in units of what rounding explains. A chain of n additions is off by at
// most n units of the sum of sizes, in practice by their root; products of numbers between -1 and 1
// have size 1/4 on average.
template <class T>
double distance(const Tensor& got, const Tensor& right, int64_t terms) {
  const std::vector<double> a = values<T>(got), b = values<T>(right);
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(a[i] - b[i]);
    most = std::isnan(d) ? INFINITY : std::max(most, d);
  }
  const double size = 1 + double(terms) / 4;
  return most / (std::numeric_limits<T>::epsilon() * (2 + 0.5 * std::sqrt(double(terms))) * size);
}

template <class T>
void check_case(const Case& c, uint64_t seed, bool with_bias = true) {
  INFO(text(c));
  Problem<T> p(c, seed);
  const View bias = with_bias ? p.bias.read() : View{};
  Tensor y = make<T>(p.y.shape(), c.y), right = make<T>(p.y.shape(), Layout::rows);
  kernels::conv2d(Cpu{}, p.x.read(), p.weight.read(), bias, y.write(), c.g);
  kernels::conv::reference(p.x.read(), p.weight.read(), bias, right.write(), c.g);
  CHECK(distance<T>(y, right, c.ci * c.kh * c.kw) < 1);
  CHECK(count_of_guards<T>(y) == int64_t(y.impl()->storage->bytes / sizeof(T)) - y.numel());

  Tensor dx = make<T>(p.x.shape(), c.x), right_dx = make<T>(p.x.shape(), Layout::rows);
  kernels::conv2d_backward_input(Cpu{}, p.y.read(), p.weight.read(), dx.write(), c.g);
  kernels::conv::reference_backward_input(p.y.read(), p.weight.read(), right_dx.write(), c.g);
  CHECK(distance<T>(dx, right_dx, c.co * c.kh * c.kw) < 1);
  CHECK(count_of_guards<T>(dx) == int64_t(dx.impl()->storage->bytes / sizeof(T)) - dx.numel());

  Tensor dw = make<T>(p.weight.shape(), c.weight),
         right_dw = make<T>(p.weight.shape(), Layout::rows);
  kernels::conv2d_backward_weight(Cpu{}, p.x.read(), p.y.read(), dw.write(), c.g);
  kernels::conv::reference_backward_weight(p.x.read(), p.y.read(), right_dw.write(), c.g);
  CHECK(distance<T>(dw, right_dw, p.y.numel() / std::max<int64_t>(1, p.y.size(1))) < 1);
  CHECK(count_of_guards<T>(dw) == int64_t(dw.impl()->storage->bytes / sizeof(T)) - dw.numel());
}

Case random_case(Random& random) {
  Case c{};
  const std::vector<int64_t> channels = {1, 2, 3, 5, 8, 16, 17, 24, 33};
  const auto channel = [&] {
    return channels[size_t(pick(random, 0, int64_t(channels.size()) - 1))];
  };
  for (;;) {
    c.n = pick(random, 0, 9) == 0 ? 0 : pick(random, 1, 3);
    c.ci = channel();
    c.co = channel();
    c.h = pick(random, 1, 12);
    c.w = pick(random, 1, 15);
    c.kh = pick(random, 1, 4);
    c.kw = pick(random, 1, 4);
    c.g.stride_h = pick(random, 1, 3);
    c.g.stride_w = pick(random, 1, 3);
    c.g.padding_h = pick(random, 0, 4);
    c.g.padding_w = pick(random, 0, 4);
    c.g.dilation_h = pick(random, 0, 2) ? 1 : pick(random, 1, 4);
    c.g.dilation_w = pick(random, 0, 2) ? 1 : pick(random, 1, 4);
    c.g.groups = pick(random, 0, 2) ? 1 : pick(random, 2, 4);
    c.x = static_cast<Layout>(pick(random, 0, 2));
    c.weight = static_cast<Layout>(pick(random, 0, 2));
    c.y = static_cast<Layout>(pick(random, 0, 2));
    if (c.h + 2 * c.g.padding_h > c.g.dilation_h * (c.kh - 1) &&
        c.w + 2 * c.g.padding_w > c.g.dilation_w * (c.kw - 1))
      return c;
  }
}

struct Threads {
  int before = num_threads();
  explicit Threads(int n) { set_num_threads(n); }
  ~Threads() { set_num_threads(before); }
};

Case square(int64_t n, int64_t ci, int64_t co, int64_t size, int64_t k, int64_t stride,
            int64_t padding, Layout layout = Layout::channels_last) {
  return {n,
          ci,
          co,
          size,
          size,
          k,
          k,
          {stride, stride, padding, padding, 1, 1, 1},
          layout,
          Layout::rows,
          Layout::channels_last};
}

}  // namespace

TEMPLATE_TEST_CASE("conv2d: random shapes and layouts", "[conv2d]", float, double) {
  Random random(std::is_same_v<TestType, float> ? 11 : 12);
  for (int i = 0; i < 250; ++i) check_case<TestType>(random_case(random), uint64_t(i), i % 3 != 0);
}

TEMPLATE_TEST_CASE("conv2d: shapes of networks", "[conv2d]", float, double) {
  check_case<TestType>(square(2, 3, 32, 32, 3, 1, 1, Layout::rows), 1);
  check_case<TestType>(square(3, 1, 32, 28, 3, 1, 0, Layout::rows), 2);
  check_case<TestType>(square(2, 32, 64, 26, 3, 1, 0), 3);
  check_case<TestType>(square(2, 64, 128, 16, 3, 2, 1), 4);
  check_case<TestType>(square(2, 64, 128, 16, 1, 2, 0), 5);
  check_case<TestType>(square(5, 80, 48, 4, 3, 1, 1), 6);
  check_case<TestType>(square(2, 48, 80, 9, 1, 1, 0), 7);
  check_case<TestType>(square(40, 48, 80, 1, 1, 1, 0), 8);
  check_case<TestType>(square(1, 3, 24, 40, 7, 2, 3, Layout::rows), 9);
  check_case<TestType>(square(1, 16, 16, 90, 5, 1, 2), 10);  // a band of rows at a time
}

TEST_CASE("conv2d: Winograd's tiles, full and cut, in every layout", "[conv2d]") {
  REQUIRE(kernels::fast_conv2d());
  check_case<float>(square(2, 32, 48, 13, 3, 1, 1), 1);
  check_case<float>(square(3, 48, 32, 10, 3, 1, 0), 2);
  check_case<float>(square(1, 32, 32, 17, 3, 1, 2, Layout::rows), 3);
  check_case<float>(square(5, 32, 32, 4, 3, 1, 3, Layout::gaps), 4);  // dx needs a crop
  check_case<float>(square(8, 160, 144, 6, 3, 1, 1), 5);  // the kernel a panel at a time
  Case c = square(4, 48, 64, 7, 3, 1, 1);
  c.w = 12;
  c.g.padding_w = 0;
  c.y = Layout::rows;
  c.weight = Layout::channels_last;
  check_case<float>(c, 6);
  c.y = Layout::gaps;
  c.weight = Layout::gaps;
  check_case<float>(c, 7, false);
}

TEST_CASE("conv2d: the direct sum can be asked for", "[conv2d]") {
  const Case c = square(2, 32, 32, 12, 3, 1, 1);
  Problem<float> p(c, 9);
  Tensor fast = make<float>(p.y.shape(), c.y), direct = make<float>(p.y.shape(), c.y);
  kernels::conv2d(Cpu{}, p.x.read(), p.weight.read(), {}, fast.write(), c.g);
  kernels::set_fast_conv2d(false);
  kernels::conv2d(Cpu{}, p.x.read(), p.weight.read(), {}, direct.write(), c.g);
  kernels::set_fast_conv2d(true);
  CHECK(values<float>(fast) != values<float>(direct));
  CHECK(distance<float>(fast, direct, c.ci * c.kh * c.kw) < 1);
}

TEST_CASE("conv2d: 16-bit floats are computed in f32 and rounded once", "[conv2d]") {
  const Case c = square(2, 5, 7, 6, 3, 1, 1);
  Problem<float> exact(c, 3);
  const auto check = [&]<class T>() {
    const auto rounded = [](const Tensor& x) {
      Tensor half = empty_strided(x.shape(), contiguous_strides(x.shape()), dtype_of<T>());
      const std::vector<double> list = values<float>(x);
      size_t i = 0;
      for_each<T>(half, [&](T& v) { v = static_cast<T>(static_cast<float>(list[i++])); });
      return half;
    };
    const auto widened = [](const Tensor& x) {
      Tensor wide = empty(x.shape(), f32);
      const std::vector<double> list = values<T>(x);
      size_t i = 0;
      for_each<float>(wide, [&](float& v) { v = static_cast<float>(list[i++]); });
      return wide;
    };
    const Tensor x = rounded(exact.x), w = rounded(exact.weight), y = rounded(exact.y);
    const Tensor wide_x = widened(x), wide_w = widened(w), wide_y = widened(y);
    Tensor got = empty(y.shape(), dtype_of<T>()), right = empty(y.shape(), f32);
    kernels::conv2d(Cpu{}, x.read(), w.read(), {}, got.write(), c.g);
    kernels::conv2d(Cpu{}, wide_x.read(), wide_w.read(), {}, right.write(), c.g);
    CHECK(values<T>(got) == values<T>(rounded(right)));
    Tensor dx = empty(x.shape(), dtype_of<T>()), right_dx = empty(x.shape(), f32);
    kernels::conv2d_backward_input(Cpu{}, y.read(), w.read(), dx.write(), c.g);
    kernels::conv2d_backward_input(Cpu{}, wide_y.read(), wide_w.read(), right_dx.write(), c.g);
    CHECK(values<T>(dx) == values<T>(rounded(right_dx)));
    Tensor dw = empty(w.shape(), dtype_of<T>()), right_dw = empty(w.shape(), f32);
    kernels::conv2d_backward_weight(Cpu{}, x.read(), y.read(), dw.write(), c.g);
    kernels::conv2d_backward_weight(Cpu{}, wide_x.read(), wide_y.read(), right_dw.write(), c.g);
    CHECK(values<T>(dw) == values<T>(rounded(right_dw)));
  };
  check.operator()<Half>();
  check.operator()<BFloat16>();
}

TEMPLATE_TEST_CASE("conv2d: the same bytes for any number of threads", "[conv2d]", float, double) {
  std::vector<Case> cases = {square(9, 16, 40, 14, 3, 1, 1), square(1, 32, 130, 12, 3, 2, 1),
                             square(40, 1, 8, 28, 3, 1, 0),  square(20, 24, 40, 4, 1, 1, 0),
                             square(9, 32, 48, 14, 3, 1, 1), square(9, 160, 144, 6, 3, 1, 1)};
  cases.push_back(cases[0]);
  cases.back().g.groups = 3;
  for (const Case& c : cases) {
    INFO(text(c));
    Problem<TestType> p(c, 5);
    std::vector<std::vector<double>> first;
    for (int threads : {1, 2, 3, 7}) {
      Threads guard(threads);
      Tensor y = make<TestType>(p.y.shape(), c.y), dx = make<TestType>(p.x.shape(), c.x);
      Tensor dw = make<TestType>(p.weight.shape(), c.weight);
      kernels::conv2d(Cpu{}, p.x.read(), p.weight.read(), p.bias.read(), y.write(), c.g);
      kernels::conv2d_backward_input(Cpu{}, p.y.read(), p.weight.read(), dx.write(), c.g);
      kernels::conv2d_backward_weight(Cpu{}, p.x.read(), p.y.read(), dw.write(), c.g);
      const std::vector<std::vector<double>> now = {values<TestType>(y), values<TestType>(dx),
                                                    values<TestType>(dw)};
      if (threads == 1) first = now;
      CHECK(now == first);
    }
  }
}
