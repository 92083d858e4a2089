#include "tapegrad/kernels/random.h"

#include <algorithm>

#include "tapegrad/core/parallel.h"
#include "tapegrad/kernels/largest_below.h"

namespace tg::kernels {
namespace {

constexpr int64_t kBlockGrain = 2048;

// The type that a dtype is drawn in: 16-bit floats are rounded from f32.
template <class T>
using Drawn = std::conditional_t<std::is_same_v<T, double>, double, float>;

// visit(i, number) for every element; `numbers` turns a block into its numbers.
template <class D, class Numbers, class Visit>
void draw(int64_t n, const RandomState& state, Numbers numbers, Visit visit) {
  constexpr int k = kPerBlock<D>;
  parallel_for((n + k - 1) / k, kBlockGrain, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      D x[k];
      numbers(random_block(state, uint64_t(b)), x);
      int64_t first = b * k, count = std::min<int64_t>(k, n - first);
      for (int64_t i = 0; i < count; ++i) visit(first + i, x[i]);
    }
  });
}

}  // namespace

void uniform(Cpu, MutView y, double low, double high, const RandomState& state) {
  visit_any_float(y.dtype, [&]<class T>() {
    using D = Drawn<T>;
    T* out = y.as<T>();
    D from = D(low), width = D(high - low);
    T top = high > low ? largest_below<T>(high) : T(D(low));
    draw<D>(
        y.numel, state, [](const RandomBlock& b, auto& x) { uniform_block(b, x); },
        [=](int64_t i, D u) {
          T value = T(from + u * width);
          out[i] = D(value) < D(top) ? value : top;
        });
  });
}

void normal(Cpu, MutView y, double mean, double std, const RandomState& state) {
  visit_any_float(y.dtype, [&]<class T>() {
    using D = Drawn<T>;
    T* out = y.as<T>();
    D m = D(mean), s = D(std);
    draw<D>(
        y.numel, state, [](const RandomBlock& b, auto& x) { normal_block(b, x); },
        [=](int64_t i, D z) { out[i] = T(m + z * s); });
  });
}

void randint(Cpu, MutView y, int64_t low, uint64_t range, const RandomState& state) {
  visit_all(y.dtype, [&]<class T>() {
    T* out = y.as<T>();
    parallel_for((y.numel + 1) / 2, kBlockGrain, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        RandomBlock block = random_block(state, uint64_t(b));
        int64_t count = std::min<int64_t>(2, y.numel - 2 * b);
        for (int64_t i = 0; i < count; ++i) {
          uint64_t wide = block.wide(int(i));
          int64_t value = int64_t(uint64_t(low) + (range ? uniform_below(wide, range) : wide));
          if constexpr (std::is_arithmetic_v<T>)
            out[2 * b + i] = T(value);
          else
            out[2 * b + i] = T(float(value));
        }
      }
    });
  });
}

void bernoulli(Cpu, View p, MutView y, const RandomState& state) {
  visit_any_float(p.dtype, [&]<class T>() {
    using D = Drawn<T>;
    const T* chance = p.as<T>();
    T* out = y.as<T>();
    draw<D>(
        y.numel, state, [](const RandomBlock& b, auto& x) { uniform_block(b, x); },
        [=](int64_t i, D u) {
          D c = D(chance[i]);
          check<ValueError>(c >= 0 && c <= 1, "a probability lies in [0,1], got", double(c));
          out[i] = T(D(u < c));
        });
  });
}

}  // namespace tg::kernels
