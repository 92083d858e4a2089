// Every operator with an integer argument is given the largest, the smallest and odd integers. It
// gives a result or an error of one line that names it; nothing overflows, hangs, or reaches
// outside of its memory (the sanitizers' builds run this too).
#include <algorithm>
#include <string>
#include <vector>

#include "catch.h"
#include "error_text.h"
#include "tapegrad/autograd/ops.h"
#include "tapegrad/core/memory.h"

using namespace tg;
using test::error_text;
using Tensors = std::vector<Tensor>;

namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
const std::vector<int64_t> kIntegers = {kLeast,
                                        kLeast + 1,
                                        -(int64_t(1) << 62),
                                        -(int64_t(1) << 32),
                                        -(int64_t(1) << 31),
                                        -9,
                                        -2,
                                        -1,
                                        0,
                                        1,
                                        2,
                                        3,
                                        9,
                                        (int64_t(1) << 31) - 1,
                                        int64_t(1) << 31,
                                        int64_t(1) << 32,
                                        int64_t(1) << 62,
                                        kMost - 1,
                                        kMost};

// What the calls work on: small, with gradients.
Tensor vector() { return arange(0, 6, 1, f32).requires_grad_(); }
Tensor matrix() { return reshape(arange(0, 12, 1, f32), {3, 4}).requires_grad_(); }
Tensor image() { return reshape(arange(0, 32, 1, f32), {1, 2, 4, 4}).requires_grad_(); }
Tensor indices(int64_t n) { return tensor(std::vector<int64_t>{0, n}, {2}); }

// Looks at every element, forward and backward.
void use(const Tensor& y) {
  constexpr int64_t kMostLooked = 100'000;
  if (y.numel() > kMostLooked) return;  // an expanded view, of more than anybody can walk through
  y.to_vector<double>();
  if (y.requires_grad()) sum(y).backward();
}

// `call` must end in a result or in an error that names the operator.
void check_call(const std::string& name, const Function<Tensors()>& call) {
  std::string text = error_text([&] {
    for (const Tensor& y : call()) use(y);
  });
  if (text.empty()) {
    SUCCEED();
    return;
  }
  INFO(text);
  CHECK(text.find(name) != text.npos);
  CHECK(text.find('\n') == text.npos);
}

// Views and results must not be larger than this, so that what is too large fails at once.
struct LittleMemory {
  LittleMemory() { set_memory_limit(memory_stats().live + (int64_t(1) << 20)); }
  ~LittleMemory() { set_memory_limit(0); }
};

struct Swept {
  std::string name;
  Function<Tensors(int64_t)> call;
};
struct SweptPair {
  std::string name;
  Function<Tensors(int64_t, int64_t)> call;
};

void sweep(const std::vector<Swept>& all) {
  LittleMemory little;
  for (const Swept& s : all)
    for (int64_t n : kIntegers) {
      INFO(s.name << " with " << n);
      check_call(s.name, [&] { return s.call(n); });
    }
}
void sweep(const std::vector<SweptPair>& all) {
  LittleMemory little;
  for (const SweptPair& s : all)
    for (int64_t n : kIntegers)
      for (int64_t m : kIntegers) {
        INFO(s.name << " with " << n << " and " << m);
        check_call(s.name, [&] { return s.call(n, m); });
      }
}

Tensors both(const std::pair<Tensor, Tensor>& p) { return {p.first, p.second}; }

}  // namespace

TEST_CASE("extreme integers: new tensors", "[faults]") {
  sweep(std::vector<Swept>{
      {"", [](int64_t n) -> Tensors { return {empty({n})}; }},
      {"",
       [](int64_t n) -> Tensors {
         return {empty({n, 0})};
       }},
      {"full",
       [](int64_t n) -> Tensors {
         return {zeros({n, 2}), ones({2, n}, i64)};
       }},
      {"arange", [](int64_t n) -> Tensors { return {arange(n)}; }},
      {"arange", [](int64_t n) -> Tensors { return {arange(n, {u8})}; }},
      {"arange", [](int64_t n) -> Tensors { return {arange(0, 10, n, i64)}; }},
      {"arange", [](int64_t n) -> Tensors { return {arange(0, -10, n, f32)}; }},
      {"arange", [](int64_t n) -> Tensors { return {arange(0, 1e-300, double(n), f32)}; }},
      {"linspace", [](int64_t n) -> Tensors { return {linspace(0, 1, n)}; }},
      {"linspace", [](int64_t n) -> Tensors { return {linspace(double(n), 1, 4, i32)}; }},
      {"eye", [](int64_t n) -> Tensors { return {eye(n)}; }},
      {"full",
       [](int64_t n) -> Tensors {
         return {full({2}, n, i8), full({2}, n, f32)};
       }},
      {"rand", [](int64_t n) -> Tensors { return {rand({n})}; }},
      {"randn", [](int64_t n) -> Tensors { return {randn({n}, f64)}; }},
      {"randperm", [](int64_t n) -> Tensors { return {randperm(n)}; }},
      {"tensor", [](int64_t n) -> Tensors { return {tensor(std::vector<float>(2), {n})}; }},
  });
  sweep(std::vector<SweptPair>{
      {"",
       [](int64_t n, int64_t m) -> Tensors {
         return {empty({n, m})};
       }},
      {"arange", [](int64_t n, int64_t m) -> Tensors { return {arange(n, m, 1, i64)}; }},
      {"arange", [](int64_t n, int64_t m) -> Tensors { return {arange(n, 0, m, i64)}; }},
      {"arange", [](int64_t n, int64_t m) -> Tensors { return {arange(n, 0, m, f64)}; }},
      {"randint", [](int64_t n, int64_t m) -> Tensors { return {randint(n, m, {4})}; }},
      {"randint", [](int64_t n, int64_t m) -> Tensors { return {randint(n, m, {4}, {i16})}; }},
      {"randint", [](int64_t n, int64_t m) -> Tensors { return {randint(0, n, {m})}; }},
  });
}

TEST_CASE("extreme integers: views", "[faults]") {
  sweep(std::vector<Swept>{
      {"reshape",
       [](int64_t n) -> Tensors {
         return {reshape(matrix(), {n, -1})};
       }},
      {"view", [](int64_t n) -> Tensors { return {view(matrix(), {n})}; }},
      {"flatten", [](int64_t n) -> Tensors { return {flatten(image(), n)}; }},
      {"flatten", [](int64_t n) -> Tensors { return {flatten(image(), 0, n)}; }},
      {"squeeze", [](int64_t n) -> Tensors { return {squeeze(image(), n)}; }},
      {"unsqueeze", [](int64_t n) -> Tensors { return {unsqueeze(matrix(), n)}; }},
      {"permute",
       [](int64_t n) -> Tensors {
         return {permute(matrix(), {0, n})};
       }},
      {"expand",
       [](int64_t n) -> Tensors {
         return {expand(ones({1, 1}), {n, -1})};
       }},
      {"expand",
       [](int64_t n) -> Tensors {
         return {expand(matrix(), {n, 3, 4})};
       }},
      {"slice", [](int64_t n) -> Tensors { return {slice(matrix(), n, 0, 2)}; }},
      {"slice", [](int64_t n) -> Tensors { return {slice(matrix(), 1, 0, 4, n)}; }},
      {"narrow", [](int64_t n) -> Tensors { return {narrow(matrix(), n, 0, 1)}; }},
      {"select", [](int64_t n) -> Tensors { return {select(matrix(), n, 0)}; }},
      {"select",
       [](int64_t n) -> Tensors {
         return {select(matrix(), 0, n), matrix()[n]};
       }},
      {"unfold", [](int64_t n) -> Tensors { return {unfold(matrix(), n, 2, 1)}; }},
      {"diagonal", [](int64_t n) -> Tensors { return {diagonal(matrix(), n)}; }},
      {"diagonal", [](int64_t n) -> Tensors { return {diagonal(image(), 1, n, 2)}; }},
      {"diagonal", [](int64_t n) -> Tensors { return {diagonal(image(), 1, 2, n)}; }},
      {"as_strided", [](int64_t n) -> Tensors { return {as_strided(matrix(), {n}, {1}, 0)}; }},
      {"as_strided",
       [](int64_t n) -> Tensors {
         return {as_strided(matrix(), {2, n}, {4, 0}, 1)};
       }},
      {"sum_to", [](int64_t n) -> Tensors { return {sum_to(matrix(), {n})}; }},
      {"sum_to",
       [](int64_t n) -> Tensors {
         return {sum_to(matrix(), {n, 4})};
       }},
  });
  sweep(std::vector<SweptPair>{
      {"reshape",
       [](int64_t n, int64_t m) -> Tensors {
         return {reshape(matrix(), {n, m})};
       }},
      {"transpose", [](int64_t n, int64_t m) -> Tensors { return {transpose(image(), n, m)}; }},
      {"expand",
       [](int64_t n, int64_t m) -> Tensors {
         return {expand(ones({1, 1}), {n, m})};
       }},
      {"slice", [](int64_t n, int64_t m) -> Tensors { return {slice(vector(), 0, n, m)}; }},
      {"slice", [](int64_t n, int64_t m) -> Tensors { return {slice(vector(), 0, n, 6, m)}; }},
      {"slice",
       [](int64_t n, int64_t m) -> Tensors {
         return {slice(expand(ones({1}), {kMost}), 0, n, m, 1)};
       }},
      {"narrow", [](int64_t n, int64_t m) -> Tensors { return {narrow(vector(), 0, n, m)}; }},
      {"unfold", [](int64_t n, int64_t m) -> Tensors { return {unfold(vector(), 0, n, m)}; }},
      {"as_strided",
       [](int64_t n, int64_t m) -> Tensors { return {as_strided(vector(), {2}, {n}, m)}; }},
      {"as_strided",
       [](int64_t n, int64_t m) -> Tensors { return {as_strided(vector(), {n}, {m}, 0)}; }},
  });
}

TEST_CASE("extreme integers: indexing and joining", "[faults]") {
  sweep(std::vector<Swept>{
      {"index", [](int64_t n) -> Tensors { return {matrix().index({n})}; }},
      {"index", [](int64_t n) -> Tensors { return {matrix().index({slice(none, none, n)})}; }},
      {"index", [](int64_t n) -> Tensors { return {matrix().index({indices(n)})}; }},
      {"index",
       [](int64_t n) -> Tensors {
         return {matrix().index({slice(), indices(n)})};
       }},
      {"index_put_",
       [](int64_t n) -> Tensors {
         return {matrix().detach().clone().index_put_({n, 0}, 1)};
       }},
      {"index_put_",
       [](int64_t n) -> Tensors {
         return {matrix().detach().clone().index_put_({indices(n)}, 1)};
       }},
      {"index_select",
       [](int64_t n) -> Tensors { return {index_select(matrix(), n, indices(0))}; }},
      {"index_select",
       [](int64_t n) -> Tensors { return {index_select(matrix(), 1, indices(n))}; }},
      {"gather", [](int64_t n) -> Tensors { return {gather(vector(), n, indices(1))}; }},
      {"gather", [](int64_t n) -> Tensors { return {gather(vector(), 0, indices(n))}; }},
      {"scatter_add",
       [](int64_t n) -> Tensors { return {scatter_add(vector(), n, indices(1), ones({2}))}; }},
      {"scatter_add",
       [](int64_t n) -> Tensors { return {scatter_add(vector(), 0, indices(n), ones({2}))}; }},
      {"masked_fill",
       [](int64_t n) -> Tensors { return {masked_fill(ones({2}, i8), ones({2}, boolean), n)}; }},
      {"tril", [](int64_t n) -> Tensors { return {tril(matrix(), n)}; }},
      {"triu", [](int64_t n) -> Tensors { return {triu(matrix(), n)}; }},
      {"embedding", [](int64_t n) -> Tensors { return {embedding(indices(n), matrix())}; }},
      {"embedding", [](int64_t n) -> Tensors { return {embedding(indices(1), matrix(), n)}; }},
      {"one_hot", [](int64_t n) -> Tensors { return {one_hot(indices(1), n)}; }},
      {"one_hot", [](int64_t n) -> Tensors { return {one_hot(indices(n))}; }},
      {"one_hot", [](int64_t n) -> Tensors { return {one_hot(indices(n), 4)}; }},
      {"cat",
       [](int64_t n) -> Tensors {
         return {cat({matrix(), matrix()}, n)};
       }},
      {"stack",
       [](int64_t n) -> Tensors {
         return {stack({matrix(), matrix()}, n)};
       }},
      {"split", [](int64_t n) { return split(vector(), n); }},
      {"split", [](int64_t n) { return split(matrix(), 2, n); }},
      {"chunk", [](int64_t n) { return chunk(matrix(), 2, n); }},
      {"chunk", [](int64_t n) { return chunk(vector(), n); }},
      {"chunk", [](int64_t n) { return n > 1000 ? Tensors() : chunk(ones({0}), n); }},
  });
  sweep(std::vector<SweptPair>{
      {"index", [](int64_t n, int64_t m) -> Tensors { return {vector().index({slice(n, m)})}; }},
      {"index",
       [](int64_t n, int64_t m) -> Tensors { return {vector().index({slice(n, none, m)})}; }},
      {"split",
       [](int64_t n, int64_t m) {
         return split(vector(), std::vector<int64_t>{n, m});
       }},
      {"split",
       [](int64_t n, int64_t m) {
         return split(vector(), std::vector<int64_t>{3, n, m});
       }},
  });
}

TEST_CASE("extreme integers: reductions, order and losses", "[faults]") {
  using Dims = std::vector<int64_t>;
  sweep(std::vector<Swept>{
      {"sum", [](int64_t n) -> Tensors { return {sum(matrix(), n)}; }},
      {"mean",
       [](int64_t n) -> Tensors {
         return {mean(matrix(), Dims{0, n})};
       }},
      {"amax", [](int64_t n) -> Tensors { return {amax(matrix(), {n}, true)}; }},
      {"amin",
       [](int64_t n) -> Tensors {
         return {amin(matrix(), {n, 1})};
       }},
      {"max", [](int64_t n) { return both(max(matrix(), n)); }},
      {"min", [](int64_t n) { return both(min(matrix(), n)); }},
      {"argmax", [](int64_t n) -> Tensors { return {argmax(matrix(), n)}; }},
      {"argmin", [](int64_t n) -> Tensors { return {argmin(matrix(), n)}; }},
      {"var", [](int64_t n) -> Tensors { return {var(matrix(), {n})}; }},
      {"var", [](int64_t n) -> Tensors { return {var(matrix(), {}, n)}; }},
      {"std", [](int64_t n) -> Tensors { return {tg::std(matrix(), {1}, n)}; }},
      {"logsumexp", [](int64_t n) -> Tensors { return {logsumexp(matrix(), n)}; }},
      {"cumsum", [](int64_t n) -> Tensors { return {cumsum(matrix(), n)}; }},
      {"norm", [](int64_t n) -> Tensors { return {norm(matrix(), 2, {n})}; }},
      {"norm", [](int64_t n) -> Tensors { return {norm(matrix(), double(n))}; }},
      {"softmax", [](int64_t n) -> Tensors { return {softmax(matrix(), n)}; }},
      {"log_softmax", [](int64_t n) -> Tensors { return {log_softmax(matrix(), n)}; }},
      {"sort", [](int64_t n) { return both(sort(matrix(), n)); }},
      {"sort", [](int64_t n) -> Tensors { return {argsort(matrix(), n)}; }},
      {"topk", [](int64_t n) { return both(topk(matrix(), n)); }},
      {"topk", [](int64_t n) { return both(topk(matrix(), 2, n)); }},
      {"topk", [](int64_t n) { return both(topk(scalar_tensor(1), n)); }},
      {"cross_entropy",
       [](int64_t n) -> Tensors { return {cross_entropy(matrix(), full({3}, n, i64))}; }},
      {"nll_loss", [](int64_t n) -> Tensors { return {nll_loss(matrix(), full({3}, n, i64))}; }},
      {"layer_norm", [](int64_t n) -> Tensors { return {layer_norm(matrix(), {n})}; }},
      {"layer_norm",
       [](int64_t n) -> Tensors {
         return {layer_norm(matrix(), {n, n})};
       }},
  });
  sweep(std::vector<SweptPair>{
      {"cross_entropy",
       [](int64_t n, int64_t m) -> Tensors {
         return {cross_entropy(matrix(), tensor(std::vector<int64_t>{0, n, 1}, {3}),
                               {.ignore_index = m})};
       }},
      {"nll_loss",
       [](int64_t n, int64_t m) -> Tensors {
         return {
             nll_loss(matrix(), tensor(std::vector<int64_t>{0, n, 1}, {3}), {.ignore_index = m})};
       }},
  });
}

TEST_CASE("extreme integers: convolution and pooling", "[faults]") {
  const Tensor one = ones({2, 2, 1, 1}).requires_grad_(),
               three = ones({2, 2, 3, 3}).requires_grad_();
  sweep(std::vector<SweptPair>{
      {"conv2d",
       [&](int64_t n, int64_t m) -> Tensors {
         return {conv2d(image(), three, {}, {.stride = n, .padding = m})};
       }},
      {"conv2d",
       [&](int64_t n, int64_t m) -> Tensors {
         return {conv2d(image(), one, {}, {.stride = {n, 1}, .padding = {1, m}})};
       }},
      {"conv2d",
       [&](int64_t n, int64_t m) -> Tensors {
         return {conv2d(image(), three, {}, {.padding = n, .dilation = m})};
       }},
      {"conv2d",
       [&](int64_t n, int64_t m) -> Tensors {
         return {conv2d(image(), three, {}, {.stride = n, .padding = 5, .dilation = {m, 2}})};
       }},
      {"conv2d",
       [&](int64_t n, int64_t m) -> Tensors {
         return {conv2d(image(), one, {}, {.stride = {2, n}, .dilation = m})};
       }},
      {"conv2d",
       [&](int64_t n, int64_t m) -> Tensors {
         return {conv2d(image(), one, {}, {.stride = m, .groups = n})};
       }},
      {"conv2d",
       [&](int64_t n, int64_t m) -> Tensors {
         return {conv2d(expand(ones({1, 1, 1, 1}), {1, 1, std::max<int64_t>(n, 0), 1}),
                        ones({1, 1, 2, 1}), {}, {.stride = m})};
       }},
      {"conv2d",
       [&](int64_t n, int64_t m) -> Tensors {
         return {conv2d(ones({1, 1, 4, 4}),
                        expand(ones({1, 1, 1, 1}), {1, 1, std::max<int64_t>(n, 0), 1}), {},
                        {.padding = m})};
       }},
      {"max_pool2d",
       [](int64_t n, int64_t m) -> Tensors { return {max_pool2d(image(), n, {.stride = m})}; }},
      {"max_pool2d",
       [](int64_t n, int64_t m) -> Tensors {
         return {max_pool2d(image(), n, {.padding = m, .ceil_mode = true})};
       }},
      {"max_pool2d",
       [](int64_t n, int64_t m) -> Tensors {
         return {max_pool2d(image(), {n, 2}, {.stride = {1, m}, .padding = {n / 2, 1}})};
       }},
      {"avg_pool2d",
       [](int64_t n, int64_t m) -> Tensors {
         return {avg_pool2d(image(), {2, n}, {.stride = m, .padding = {1, n / 2}})};
       }},
      {"avg_pool2d",
       [](int64_t n, int64_t m) -> Tensors {
         return {avg_pool2d(image(), {n, m},
                            {.stride = {m, n}, .padding = {n / 2, m / 2}, .ceil_mode = true})};
       }},
      {"avg_pool2d",
       [](int64_t n, int64_t m) -> Tensors {
         return {avg_pool2d(expand(ones({1, 1, 1, 1}), {1, 1, std::max<int64_t>(n, 0), 1}), 1,
                            {.stride = m})};
       }},
      {"adaptive_avg_pool2d",
       [](int64_t n, int64_t m) -> Tensors {
         return {adaptive_avg_pool2d(image(), {n, m})};
       }},
  });
}

TEST_CASE("extreme integers give right results where they mean something", "[faults]") {
  const Tensor m = matrix().detach(), x = image().detach();
  auto same = [](const Tensor& a, const Tensor& b) {
    CHECK(a.shape() == b.shape());
    CHECK(a.to_vector<double>() == b.to_vector<double>());
  };
  for (int64_t far : {kLeast, kLeast + 1, -(int64_t(1) << 62)}) {
    same(tril(m, far), zeros({3, 4}));
    same(triu(m, far), m);
    CHECK(diagonal(m, far).numel() == 0);
    same(slice(m, 1, far, kMost), m);
    CHECK(slice(m, 1, 0, far).numel() == 0);
  }
  for (int64_t far : {kMost, kMost - 1, int64_t(1) << 62}) {
    INFO(far);
    same(tril(m, far), m);
    same(triu(m, far), zeros({3, 4}));
    CHECK(diagonal(m, far).numel() == 0);
    same(slice(m, 0, 0, 3, far), narrow(m, 0, 0, 1));
    same(unfold(m, 1, 3, far), reshape(narrow(m, 1, 0, 3), {3, 1, 3}));
    CHECK(split(m, far, 1).size() == 1);
    CHECK(chunk(m, far, 1).size() == 4);
    same(arange(far - 1, far, 1, i64), tensor(std::vector<int64_t>{far - 1}, {1}));
    same(arange(kLeast, far, far, i64).to(f64),
         tensor(
             std::vector<double>{double(kLeast), double(kLeast + far), double(kLeast + far + far)},
             {3}));
    // A stride over the whole image leaves the first window, forward and backward.
    for (Size2 stride : {Size2(far), Size2(far, 2), Size2(2, far)}) {
      Size2 near{std::min<int64_t>(stride.h, 9), std::min<int64_t>(stride.w, 9)};
      Tensor w = ones({3, 2, 2, 3}).requires_grad_(), a = image(), b = image();
      Tensor far_y = conv2d(a, w, {}, {.stride = stride, .padding = 1});
      Tensor near_y = conv2d(b, w, {}, {.stride = near, .padding = 1});
      same(far_y, near_y);
      sum(far_y * far_y).backward();
      Tensor dw = w.grad().clone();
      w.set_grad({});
      sum(near_y * near_y).backward();
      same(a.grad(), b.grad());
      same(dw, w.grad());
      for (bool ceil : {false, true}) {
        same(max_pool2d(x, 3, {.stride = stride, .padding = 1, .ceil_mode = ceil}),
             max_pool2d(x, 3, {.stride = near, .padding = 1, .ceil_mode = ceil}));
        same(avg_pool2d(x, 1, {.stride = stride, .ceil_mode = ceil}),
             avg_pool2d(x, 1, {.stride = near, .ceil_mode = ceil}));
      }
    }
    same(conv2d(x, ones({1, 2, 1, 1}), {}, {.dilation = far}), conv2d(x, ones({1, 2, 1, 1})));
    CHECK_THROWS_WITH(conv2d(x, ones({1, 2, 1, 1}), {}, {.padding = far}),
                      Catch::StartsWith("conv2d: padding must be at most 1073741824, got "));
    CHECK_THROWS_WITH(conv2d(x, ones({1, 2, 2, 2}), {}, {.dilation = far}),
                      Catch::Contains("is larger than the padded image"));
    CHECK_THROWS_WITH(max_pool2d(x, far, {.padding = far / 2}),
                      Catch::StartsWith("max_pool2d: kernel must be at most 2147483647, got "));
  }
  same(randint(kLeast, kLeast + 1, {3}).to(f64), full({3}, double(kLeast), f64));
  same(var(m, {}, kMost), scalar_tensor(INFINITY));
  CHECK(var(m, {}, kLeast).item() == Approx(143 / 0x1p63));
  CHECK_THROWS_AS(one_hot(indices(kMost)), IndexError);
  CHECK_THROWS_AS(one_hot(tensor(std::vector<int64_t>{-3, -2}, {2})), IndexError);
}
