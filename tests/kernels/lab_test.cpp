// Every rung of the kernel lab, through the engine's kernels and on the same inputs, against the
// formula in f64: odd sizes, views, empty operands, NaN and infinities, memory that must not be
// read, and guards around what is written. Speed is measured elsewhere (`tapegrad bench lab`).
#include "tapegrad/kernels/lab.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "catch.h"
#include "error_text.h"
#include "tapegrad/autograd/ops.h"
#include "tapegrad/core/parallel.h"
#include "tapegrad/core/random.h"
#include "tapegrad/kernels/conv2d.h"
#include "tapegrad/kernels/copy.h"
#include "tapegrad/kernels/cpu/conv2d/reference.h"
#include "tapegrad/kernels/cpu/lab/rungs.h"
#include "tapegrad/kernels/layer_norm.h"
#include "tapegrad/kernels/matmul.h"
#include "tapegrad/kernels/softmax.h"

using namespace tg;
namespace lab = kernels::lab;

namespace {

using Doubles = std::vector<double>;
constexpr double kEps = std::numeric_limits<float>::epsilon(), kInf = INFINITY;
constexpr float kUnread = std::numeric_limits<float>::quiet_NaN();

// Room for a result that is full of what must not be read, with guards on both sides.
struct Guarded {
  static constexpr int64_t kGuard = 32;
  Tensor memory, y;
  explicit Guarded(const Shape& shape) {
    memory = full({shape.numel() + 2 * kGuard}, 77.0);
    y = alias(memory, shape, contiguous_strides(shape), kGuard);
    fill_(y, kUnread);
  }
  bool intact() const {
    const Doubles all = memory.to_vector<double>();
    const auto is_guard = [](double v) { return v == 77; };
    return std::all_of(all.begin(), all.begin() + kGuard, is_guard) &&
           std::all_of(all.end() - kGuard, all.end(), is_guard);
  }
};

// The first element that is further from the truth than allowed; "" if there is none. NaN and
// infinities must be met.
std::string fault(const Tensor& y, const Doubles& truth, const Doubles& allowed) {
  const Doubles values = y.to_vector<double>();
  if (values.size() != truth.size()) return "another number of elements";
  for (size_t i = 0; i < truth.size(); ++i) {
    const bool same = std::isnan(truth[i])   ? std::isnan(values[i])
                      : std::isinf(truth[i]) ? values[i] == truth[i]
                                             : std::abs(values[i] - truth[i]) <= allowed[i];
    if (!same)
      return "element " + std::to_string(i) + " is " + to_text(values[i]) + " for " +
             to_text(truth[i]);
  }
  return "";
}

double at(const Doubles& x, int64_t i) { return x[size_t(i)]; }

// ---- matmul ----

void check_product(const Tensor& a, const Tensor& b, const Tensor& addend = {}) {
  INFO("matmul " << to_text(a.shape()) << " " << to_text(b.shape()));
  const int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1);
  const int64_t batch = a.dim() == 3 ? a.size(0) : 1;
  Guarded c(a.dim() == 3 ? Shape{batch, m, n} : Shape{m, n});
  const View extra = addend.defined() ? addend.read() : View{};
  kernels::matmul(Cpu{}, a.read(), b.read(), c.y.write(), addend.defined() ? &extra : nullptr);
  const Doubles as = a.to_vector<double>(), bs = b.to_vector<double>();
  const Doubles es = addend.defined() ? expand(addend, c.y.shape()).to_vector<double>() : Doubles{};
  Doubles truth, allowed;
  for (int64_t row = 0; row < batch * m; ++row)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0, size = 0;
      for (int64_t i = 0; i < k; ++i) {
        const int64_t b_from = b.dim() == 3 ? row / m * k : 0;
        const double term = at(as, row * k + i) * at(bs, (b_from + i) * n + j);
        sum += term;
        size += std::abs(term);
      }
      if (addend.defined()) sum += at(es, row * n + j);
      truth.push_back(sum);
      // One chain of roundings, each up to a unit of what the sum has grown to.
      allowed.push_back(kEps * (2 + std::sqrt(double(k))) * (size + std::abs(sum)));
    }
  CHECK(fault(c.y, truth, allowed) == "");
  CHECK(c.intact());
}

void check_matmul() {
  const auto numbers = [](Shape shape) { return rand(shape) - 0.5; };
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{1, 1, 1},
                                                                   {6, 16, 8},
                                                                   {14, 32, 3},
                                                                   {7, 17, 5},
                                                                   {13, 33, 300},
                                                                   {200, 19, 530},
                                                                   {3, 1, 40},
                                                                   {1, 50, 2},
                                                                   {5, 3, 0},
                                                                   {0, 4, 3},
                                                                   {4, 0, 3}}) {
    check_product(numbers({m, k}), numbers({k, n}));
    check_product(t(numbers({k, m})), numbers({k, n}));
    check_product(numbers({m, k}), t(numbers({n, k})), numbers({n}));
    check_product(slice(numbers({m, 2 * k + 1}), 1, 1, 2 * k + 1, 2), numbers({k, n}),
                  numbers({m, n}));
    check_product(slice(slice(numbers({2 * m, k + 3}), 0, 0, 2 * m, 2), 1, 3, k + 3),
                  numbers({k, n}));
    check_product(numbers({3, m, k}), numbers({3, k, n}));
    check_product(numbers({3, m, k}), numbers({k, n}), numbers({n}));
  }
  Tensor a = numbers({9, 20}), b = numbers({20, 18});
  a.index_put_({2, 3}, NAN);
  a.index_put_({5, 0}, kInf);
  b.index_put_({0, 4}, 0.0);  // times infinity is NaN
  b.index_put_({7, 17}, -kInf);
  check_product(a, b);
  const Tensor x = floor(rand({7, 9}) * 5), y = floor(rand({9, 7}) * 5);  // exact in bf16
  CHECK(matmul(x.to(bf16), y.to(bf16)).to_vector<double>() == matmul(x, y).to_vector<double>());
}

// ---- rows ----

Doubles softmax_of(const Doubles& x) {
  double max = -kInf, sum = 0;
  for (double v : x) max = v > max ? v : max;
  for (double v : x) sum += std::exp(v - max);
  Doubles y;
  for (double v : x) y.push_back(std::exp(v - max) / sum);
  return y;
}

void check_softmax_of(const Tensor& x) {
  INFO("softmax " << to_text(x.shape()));
  Guarded y(x.shape());
  kernels::softmax(Cpu{}, x.read(), y.y.write(), 1);
  const Doubles in = x.to_vector<double>();
  Doubles truth;
  for (int64_t row = 0; row < x.size(0); ++row) {
    const auto from = in.begin() + row * x.size(1);
    for (double v : softmax_of({from, from + x.size(1)})) truth.push_back(v);
  }
  // e^x of x that was rounded: off by x units, but then small; a few units of the largest.
  CHECK(fault(y.y, truth, Doubles(truth.size(), 8 * kEps)) == "");
  CHECK(y.intact());
}

void check_softmax() {
  for (int64_t n : {1, 2, 7, 8, 9, 31, 32, 33, 1000, 5001}) {
    check_softmax_of(randn({3, n}) * 4);
    check_softmax_of(t(randn({n, 5})));
    check_softmax_of(slice(randn({4, 2 * n}), 1, 0, 2 * n, 2));
  }
  check_softmax_of(zeros({2, 0}));
  check_softmax_of(zeros({0, 3}));
  check_softmax_of(tensor({{1000, 996, 0, -1000}, {-1000, -1004, -1008, -3008}}));
  check_softmax_of(tensor(
      {{0, -kInf, 1}, {-kInf, -kInf, -kInf}, {0, 1, 2}, {kInf, 0, 1}, {0, NAN, 1}, {NAN, 3, 3}}));
  CHECK(softmax(tensor({0, 0}, bf16), 0).to_vector<double>() == Doubles{0.5, 0.5});
}

void check_layer_norm_of(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  INFO("layer_norm " << to_text(x.shape()));
  const int64_t rows = x.size(0), n = x.size(1);
  const double eps = 1e-5;
  Guarded y(x.shape()), mean({rows}), rstd({rows});
  kernels::layer_norm(Cpu{}, x.read(), weight.defined() ? weight.read() : View{},
                      bias.defined() ? bias.read() : View{}, y.y.write(), mean.y.write(),
                      rstd.y.write(), eps);
  const Doubles in = x.to_vector<double>();
  const Doubles w = weight.defined() ? weight.to_vector<double>() : Doubles(size_t(n), 1.0);
  const Doubles b = bias.defined() ? bias.to_vector<double>() : Doubles(size_t(n), 0.0);
  Doubles truth, allowed, means, rstds;
  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; ++i) sum += at(in, row * n + i);
    const double m = sum / double(n);
    for (int64_t i = 0; i < n; ++i) squares += std::pow(at(in, row * n + i) - m, 2);
    const double r = 1 / std::sqrt(squares / double(n) + eps);
    means.push_back(m);
    rstds.push_back(r);
    for (int64_t i = 0; i < n; ++i) {
      const double xhat = (at(in, row * n + i) - m) * r;
      truth.push_back(xhat * at(w, i) + at(b, i));
      // The mean is rounded before it is taken off.
      allowed.push_back(16 * kEps *
                        (std::abs(at(w, i)) * (std::abs(xhat) + std::abs(m) * r + 1) + 1));
    }
  }
  CHECK(fault(y.y, truth, allowed) == "");
  CHECK(fault(mean.y, means, Doubles(means.size(), 64 * kEps)) == "");
  CHECK(fault(rstd.y, rstds, [&] {
          Doubles a;
          for (double r : rstds) a.push_back(16 * kEps * r);
          return a;
        }()) == "");
  CHECK((y.intact() && mean.intact() && rstd.intact()));
}

void check_layer_norm() {
  for (int64_t n : {1, 3, 4, 7, 8, 9, 33, 1000, 5001}) {
    check_layer_norm_of(randn({3, n}) + 3, randn({n}), randn({n}));
    check_layer_norm_of(randn({2, n}), {}, {});
    check_layer_norm_of(full({2, n}, 3.0), randn({n}), {});  // variance 0
  }
  check_layer_norm_of(zeros({0, 3}), {}, {});
  Tensor x = randn({3, 21});
  x.index_put_({1, 20}, NAN);  // that row alone
  check_layer_norm_of(x, {}, {});
  x.index_put_({1, 20}, kInf);
  check_layer_norm_of(x, {}, {});
}

// ---- conv2d ----

void check_convolution(const Tensor& x, const Tensor& weight, const Tensor& bias,
                       const kernels::Conv2dGeometry& g, double rounding = 1) {
  INFO("conv2d " << to_text(x.shape()) << " " << to_text(weight.shape()) << " groups " << g.groups);
  const auto results = [](int64_t in, int64_t k, int64_t stride, int64_t padding,
                          int64_t dilation) {
    return (in + 2 * padding - dilation * (k - 1) - 1) / stride + 1;
  };
  const Shape shape{x.size(0), weight.size(0),
                    results(x.size(2), weight.size(2), g.stride_h, g.padding_h, g.dilation_h),
                    results(x.size(3), weight.size(3), g.stride_w, g.padding_w, g.dilation_w)};
  const View b = bias.defined() ? bias.read() : View{};
  Guarded y(shape);
  kernels::conv2d(Cpu{}, x.read(), weight.read(), b, y.y.write(), g);
  // The definition, in f64, of the values and of their sizes.
  Tensor truth = empty(shape, f64), size = empty(shape, f64);
  const Tensor xd = x.to(f64), wd = weight.to(f64), bd = bias.defined() ? bias.to(f64) : Tensor();
  const View bv = bias.defined() ? bd.read() : View{};
  kernels::conv::reference(xd.read(), wd.read(), bv, truth.write(), g);
  kernels::conv::reference(abs(xd).read(), abs(wd).read(), View{}, size.write(), g);
  const double terms = double(weight.size(1) * weight.size(2) * weight.size(3));
  Doubles allowed = size.to_vector<double>();
  for (double& a : allowed) a = rounding * kEps * (2 + std::sqrt(terms)) * (a + 1);
  CHECK(fault(y.y, truth.to_vector<double>(), allowed) == "");
  CHECK(y.intact());
}

void check_conv2d() {
  const auto last = [](const Tensor& x) {
    return copy_(empty_strided(x.shape(), channels_last_strides(x.shape())), x);
  };
  const Tensor x = randn({2, 6, 9, 11});
  for (const Tensor& in : {x, last(x), slice(randn({2, 6, 9, 22}), 3, 0, 22, 2)}) {
    check_convolution(in, randn({5, 6, 3, 3}), randn({5}), {});
    check_convolution(in, randn({17, 6, 3, 2}), {}, {1, 2, 1, 0});
    check_convolution(in, randn({33, 6, 1, 1}), randn({33}), {2, 1});
    check_convolution(in, randn({4, 3, 3, 3}), randn({4}), {2, 1, 2, 1, 1, 2, 2});  // 2 groups
    check_convolution(in, randn({6, 1, 3, 3}), {}, {1, 1, 1, 1, 1, 1, 6});          // depthwise
    check_convolution(in, transpose(randn({6, 4, 3, 3}), 0, 1), {}, {1, 1, 3, 3, 3, 3});
  }
  // Winograd rounds up to twice as much.
  check_convolution(last(randn({2, 32, 16, 16})), randn({32, 32, 3, 3}), randn({32}), {1, 1, 1, 1},
                    2);
  check_convolution(zeros({0, 3, 5, 5}), randn({2, 3, 3, 3}), {}, {});
  check_convolution(zeros({2, 0, 5, 5}), zeros({3, 0, 3, 3}), randn({3}), {});
  check_convolution(zeros({1, 2, 0, 0}), randn({3, 2, 2, 2}), randn({3}), {1, 1, 1, 1});
  Tensor holed = randn({1, 2, 7, 7});
  holed.index_put_({0, 1, 3, 3}, NAN);
  holed.index_put_({0, 0, 6, 6}, kInf);
  check_convolution(holed, rand({3, 2, 3, 3}) + 0.5, randn({3}), {1, 1, 1, 1});
}

// ---- transpose ----

void check_transposed(const Tensor& x) {
  INFO("transpose " << to_text(x.shape()) << " strides " << to_text(x.strides()));
  const Tensor y = contiguous(x);
  const Shape s = x.shape(), st = x.strides();
  const auto* from = static_cast<const int32_t*>(x.read().data);
  const auto* to = static_cast<const int32_t*>(y.read().data);
  int64_t wrong = 0;
  for (int64_t i = 0; i < s[0]; ++i)
    for (int64_t j = 0; j < s[1]; ++j)
      for (int64_t k = 0; k < s[2]; ++k) wrong += *to++ != from[i * st[0] + j * st[1] + k * st[2]];
  CHECK(wrong == 0);
}

void check_transpose() {
  for (DType dtype : {i32, f32}) {  // the bits of f32 are NaN too: none may change
    const auto bits = [&](Shape shape) {
      Tensor x = empty(shape, dtype);
      auto* data = static_cast<uint32_t*>(x.write().data);
      for (int64_t i = 0; i < x.numel(); ++i) data[i] = uint32_t(i) * 2654435761u;
      return x;
    };
    for (const auto& [m, n] : std::vector<std::array<int64_t, 2>>{
             {1, 1}, {5, 4}, {8, 8}, {7, 64}, {65, 33}, {31, 100}, {130, 70}}) {
      check_transposed(transpose(bits({1, m, n}), 1, 2));
      check_transposed(transpose(bits({3, m, n}), 1, 2));
      check_transposed(permute(bits({m, 3, n}), {2, 1, 0}));
      check_transposed(transpose(slice(bits({2, m, n + 5}), 2, 2, n + 2), 1, 2));
    }
    check_transposed(transpose(bits({2, 0, 5}), 1, 2));
  }
}

const std::map<std::string, void (*)()> kChecks = {{"matmul", check_matmul},
                                                   {"softmax", check_softmax},
                                                   {"layer_norm", check_layer_norm},
                                                   {"conv2d", check_conv2d},
                                                   {"transpose", check_transpose}};

}  // namespace

TEST_CASE("lab: every rung agrees with the formula", "[lab]") {
  for (const lab::Ladder& ladder : lab::ladders()) {
    REQUIRE(kChecks.count(ladder.name) == 1);
    CHECK(ladder.rungs.size() >= (ladder.name == "matmul" ? 6 : 4));
    CHECK(ladder.rungs.back().name == "engine");
    for (const lab::Rung& rung : ladder.rungs) {
      INFO(ladder.name << "/" << rung.name);
      const lab::Using in_use(ladder.name, rung.name);
      CHECK(lab::used(ladder.name) == rung.name);
      manual_seed(1);
      kChecks.at(ladder.name)();
    }
  }
}

TEST_CASE("lab: the chosen rung is what runs", "[lab]") {
  const Tensor a = ones({4, 3}), b = ones({3, 2}), images = ones({1, 2, 5, 5});
  const auto first = [](const Tensor& y) { return y.to_vector<double>().front(); };
  lab::chosen<lab::Product> = [](const lab::Product& p) { *p.c = 42; };
  CHECK(lab::used("matmul") == "a function of the user's own");
  CHECK(first(matmul(a, b)) == 42);
  CHECK(first(linear(a, t(b), ones({2}))) == 43);
  {
    const lab::Using engine("matmul", "engine");
    CHECK(first(matmul(a, b)) == 3);
  }
  CHECK(first(matmul(a, b)) == 42);
  CHECK(first(matmul(a.to(f64), b.to(f64))) == 3);  // the lab is f32's
  lab::use("matmul", "engine");
  CHECK(first(matmul(a, b)) == 3);

  lab::chosen<lab::SoftmaxRow> = [](const lab::SoftmaxRow& p) { *p.y = 42; };
  CHECK(first(softmax(a, 1)) == 42);
  lab::use("softmax", "engine");
  lab::chosen<lab::LayerNormRow> = [](const lab::LayerNormRow& p) {
    *p.y = 42;
    *p.mean = *p.rstd = 0;
  };
  CHECK(first(layer_norm(a, {3})) == 42);
  lab::use("layer_norm", "engine");
  lab::chosen<lab::Images> = [](const lab::Images& p) { *p.y = 42; };
  CHECK(first(conv2d(images, ones({1, 2, 3, 3}))) == 42);
  lab::use("conv2d", "engine");
  lab::chosen<lab::Matrix> = [](const lab::Matrix& p) { *p.y = 42; };
  CHECK(first(contiguous(t(ones({8, 8})))) == 42);
  lab::use("transpose", "engine");
}

TEST_CASE("lab: rungs that divide rows among threads give the same bits", "[lab]") {
  const int threads = num_threads();
  manual_seed(2);
  const Tensor x = randn({300, 700}), w = randn({700});
  for (const char* name : {"softmax", "layer_norm"})
    for (const lab::Rung& rung : lab::ladder(name).rungs) {
      INFO(name << "/" << rung.name);
      const lab::Using in_use(name, rung.name);
      const auto run = [&](int count) {
        set_num_threads(count);
        return (name == std::string("softmax") ? softmax(x, 1) : layer_norm(x, {700}, w, w))
            .to_vector<float>();
      };
      const std::vector<float> one = run(1);
      for (int count : {2, 3, 7}) CHECK(run(count) == one);
    }
  set_num_threads(threads);
}

TEST_CASE("lab: names that are none", "[lab]") {
  using test::error_text;
  CHECK(error_text<ValueError>([] { lab::use("matmull", "engine"); }) ==
        "the kernel lab has no 'matmull', only matmul, softmax, layer_norm, conv2d, transpose");
  CHECK(error_text<ValueError>([] { lab::use("softmax", "three_loops"); }) ==
        "the ladder of softmax has no rung 'three_loops', only formula, stored, polynomial, "
        "vectors, engine");
  CHECK(error_text<ValueError>([] { lab::used(""); }) != "");
  CHECK(lab::used("softmax") == "engine");
}
