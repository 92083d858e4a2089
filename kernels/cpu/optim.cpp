// Optimizers are bound by memory: each element is read and written once. Rules are written for
// blocks of kBlock values, whose fixed length lets the compiler use whole registers.
#include "tapegrad/kernels/optim.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "tapegrad/core/parallel.h"

namespace tg::kernels {

namespace {

constexpr int64_t kChunk = 16384;  // elements: a thread's piece, about 256 KiB of Adam's traffic
constexpr int kBlock = 16;

template <class T>
using Compute = std::conditional_t<sizeof(T) == 2, float, T>;  // f16 and bf16 compute in f32

// Up to kBlock values of one tensor in the type they are computed in, filled up with zeros.
template <class T>
struct Copy {
  Compute<std::remove_const_t<T>> values[kBlock] = {};
  T* memory;
  int64_t n;
  Copy(T* at, int64_t count) : memory(at), n(count) {
    for (int64_t i = 0; i < n; ++i) values[i] = Compute<std::remove_const_t<T>>(memory[i]);
  }
  void write_back() const {
    if constexpr (!std::is_const_v<T>)
      for (int64_t i = 0; i < n; ++i) memory[i] = T(values[i]);
  }
};

// rule(pointers to kBlock values of each tensor), over elements [begin, end). The pointers lead
// into the tensors themselves; f16, bf16 and the last elements, fewer than kBlock, pass through
// copies.
template <class T, class Rule, class... Tensors>
void for_blocks(int64_t begin, int64_t end, Rule&& rule, Tensors*... tensors) {
  for (int64_t at = begin; at < end; at += kBlock) {
    const int64_t n = std::min<int64_t>(kBlock, end - at);
    if constexpr (std::is_same_v<T, Compute<T>>)
      if (n == kBlock) {
        rule((tensors + at)...);
        continue;
      }
    std::tuple<Copy<Tensors>...> copies(Copy<Tensors>(tensors + at, n)...);
    std::apply(
        [&](auto&... copy) {
          rule(copy.values...);
          (copy.write_back(), ...);
        },
        copies);
  }
}

// Elements [begin, end) of entry number `entry`.
struct Chunk {
  size_t entry;
  int64_t begin, end;
};

template <class Entries, class Size>
std::vector<Chunk> cut(const Entries& entries, Size&& size) {
  std::vector<Chunk> chunks;
  for (size_t e = 0; e < entries.size(); ++e)
    for (int64_t n = size(entries[e]), at = 0; at < n; at += kChunk)
      chunks.push_back({e, at, std::min(at + kChunk, n)});
  return chunks;
}

// work(entry, begin, end) over all elements. Four chunks are worth waking a thread for.
template <class Entries, class Size, class Work>
void for_chunks(const Entries& entries, Size&& size, Work&& work) {
  std::vector<Chunk> chunks = cut(entries, size);
  parallel_for(int64_t(chunks.size()), 4, [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c)
      work(entries[chunks[size_t(c)].entry], chunks[size_t(c)].begin, chunks[size_t(c)].end);
  });
}

template <class T>
void sgd_chunk(const SgdEntry& e, const SgdRule& rule, int64_t begin, int64_t end) {
  using C = Compute<T>;
  T* parameter = e.parameter.as<T>();
  const T* gradient = e.gradient.as<T>();
  const C lr = C(rule.lr), decay = C(rule.weight_decay), sign = rule.maximize ? C(-1) : C(1);
  if (!e.buffer.as<T>())
    return for_blocks<T>(
        begin, end,
        [=](C* __restrict p, const C* __restrict g) {
          for (int i = 0; i < kBlock; ++i) p[i] -= lr * (sign * g[i] + decay * p[i]);
        },
        parameter, gradient);
  // The first step takes the gradient as it is, and nothing of a buffer that holds nothing.
  const bool first = e.first, nesterov = rule.nesterov;
  const C momentum = C(rule.momentum), take = first ? C(1) : C(1 - rule.dampening);
  for_blocks<T>(
      begin, end,
      [=](C* __restrict p, const C* __restrict g, C* __restrict b) {
        for (int i = 0; i < kBlock; ++i) {
          const C grad = sign * g[i] + decay * p[i];
          const C mean = momentum * (first ? C(0) : b[i]) + take * grad;
          b[i] = mean;
          p[i] -= lr * (nesterov ? grad + momentum * mean : mean);
        }
      },
      parameter, gradient, e.buffer.as<T>());
}

template <class T>
void adam_chunk(const AdamEntry& e, const AdamRule& rule, int64_t begin, int64_t end) {
  using C = Compute<T>;
  const double correction1 = 1 - std::pow(rule.beta1, double(e.step));
  const double correction2 = 1 - std::pow(rule.beta2, double(e.step));
  const C take1 = C(1 - rule.beta1), keep2 = C(rule.beta2), take2 = C(1 - rule.beta2);
  const C size = C(rule.lr / correction1), root2 = C(std::sqrt(correction2)), eps = C(rule.eps);
  const C sign = rule.maximize ? C(-1) : C(1);
  const C decay = rule.decoupled ? C(0) : C(rule.weight_decay);
  const C shrink = rule.decoupled ? C(1 - rule.lr * rule.weight_decay) : C(1);
  const T* gradient = e.gradient.as<T>();
  for_blocks<T>(
      begin, end,
      [=](C* __restrict p, const C* __restrict g, C* __restrict m, C* __restrict v) {
        for (int i = 0; i < kBlock; ++i) {
          const C grad = sign * g[i] + decay * p[i];
          m[i] += take1 * (grad - m[i]);
          v[i] = keep2 * v[i] + take2 * grad * grad;
          p[i] = shrink * p[i] - size * (m[i] / (std::sqrt(v[i]) / root2 + eps));
        }
      },
      e.parameter.as<T>(), gradient, e.exp_avg.as<T>(), e.exp_avg_sq.as<T>());
}

// The partial sums of one chunk, one per place in the block, so that many add up at once.
template <class T, class Term>
double sum_chunk(const T* x, int64_t begin, int64_t end, Term&& term) {
  double sums[kBlock] = {};
  for_blocks<T>(
      begin, end,
      [&](const Compute<T>* v) {
        for (int i = 0; i < kBlock; ++i) sums[i] += term(double(v[i]));
      },
      x);
  for (int half = kBlock / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
  return sums[0];
}

template <class T>
double largest_in_chunk(const T* x, int64_t begin, int64_t end) {
  double largest = 0;
  for (int64_t i = begin; i < end; ++i) {
    double a = std::abs(double(Compute<T>(x[i])));
    if (!(a <= largest)) largest = a;
    if (std::isnan(a)) return a;
  }
  return largest;
}

template <class Map, class Combine>
double reduce(std::span<const View> tensors, Map&& map, Combine&& combine) {
  std::vector<Chunk> chunks = cut(tensors, [](const View& x) { return x.numel; });
  auto one = [&](int64_t c) {
    const Chunk& chunk = chunks[size_t(c)];
    const View& x = tensors[chunk.entry];
    double result = 0;
    visit_any_float(x.dtype, [&]<class T>() { result = map(x.as<T>(), chunk.begin, chunk.end); });
    return result;
  };
  return parallel_reduce(
      int64_t(chunks.size()), 4, 0.0,
      [&](int64_t first, int64_t last) {
        double result = one(first);
        for (int64_t c = first + 1; c < last; ++c) result = combine(result, one(c));
        return result;
      },
      combine);
}

// x = change(x) in double, for every element of every tensor.
template <class Change>
void change_all(std::span<const MutView> tensors, Change&& change) {
  for_chunks(
      tensors, [](const MutView& x) { return x.numel; },
      [&](const MutView& x, int64_t begin, int64_t end) {
        visit_any_float(x.dtype, [&]<class T>() {
          for_blocks<T>(
              begin, end,
              [&](Compute<T>* v) {
                for (int i = 0; i < kBlock; ++i) v[i] = Compute<T>(change(double(v[i])));
              },
              x.as<T>());
        });
      });
}

}  // namespace

void sgd(Cpu, std::span<const SgdEntry> entries, const SgdRule& rule) {
  for_chunks(
      entries, [](const SgdEntry& e) { return e.parameter.numel; },
      [&](const SgdEntry& e, int64_t begin, int64_t end) {
        visit_any_float(e.parameter.dtype, [&]<class T>() { sgd_chunk<T>(e, rule, begin, end); });
      });
}

void adam(Cpu, std::span<const AdamEntry> entries, const AdamRule& rule) {
  for_chunks(
      entries, [](const AdamEntry& e) { return e.parameter.numel; },
      [&](const AdamEntry& e, int64_t begin, int64_t end) {
        visit_any_float(e.parameter.dtype, [&]<class T>() { adam_chunk<T>(e, rule, begin, end); });
      });
}

double sum_of_powers(Cpu, std::span<const View> tensors, double p) {
  auto add = [](double a, double b) { return a + b; };
  if (p == 2)
    return reduce(
        tensors,
        [](auto* x, int64_t begin, int64_t end) {
          return sum_chunk(x, begin, end, [](double v) { return v * v; });
        },
        add);
  return reduce(
      tensors,
      [p](auto* x, int64_t begin, int64_t end) {
        return sum_chunk(x, begin, end, [p](double v) { return std::pow(std::abs(v), p); });
      },
      add);
}

double largest_magnitude(Cpu, std::span<const View> tensors) {
  return reduce(
      tensors, [](auto* x, int64_t begin, int64_t end) { return largest_in_chunk(x, begin, end); },
      [](double a, double b) { return std::isnan(a) || a > b ? a : b; });
}

void scale(Cpu, std::span<const MutView> tensors, double factor) {
  change_all(tensors, [factor](double x) { return x * factor; });
}

void limit(Cpu, std::span<const MutView> tensors, double limit) {
  change_all(tensors, [limit](double x) { return x < -limit ? -limit : x > limit ? limit : x; });
}

}  // namespace tg::kernels
