// Optimizers are bound by memory: each element is read and written once. Loops run over blocks of
// kBlock values in local arrays, whose fixed length lets the compiler use whole registers; the
// last block of a chunk is filled up with zeros and runs the same code.
#include "tapegrad/kernels/optim.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tapegrad/core/parallel.h"

namespace tg::kernels {

namespace {

constexpr int64_t kChunk = 16384;  // elements: a thread's piece, about 256 KiB of Adam's traffic
constexpr int kBlock = 16;

template <class T>
using Compute = std::conditional_t<sizeof(T) == 2, float, T>;  // f16 and bf16 compute in f32

template <class F>
void visit_parameter(DType t, F&& fn) {
  if (t == f16) return fn.template operator()<Half>();
  if (t == bf16) return fn.template operator()<BFloat16>();
  visit_float(t, fn);
}

// Values of one tensor for one block.
template <class T>
struct Block {
  Compute<T> v[kBlock];
  void load(const T* from, int64_t n) {
    if (n == kBlock)
      for (int i = 0; i < kBlock; ++i) v[i] = Compute<T>(from[i]);
    else
      for (int i = 0; i < kBlock; ++i) v[i] = i < n ? Compute<T>(from[i]) : Compute<T>(0);
  }
  void store(T* to, int64_t n) const {
    if (n == kBlock)
      for (int i = 0; i < kBlock; ++i) to[i] = T(v[i]);
    else
      for (int i = 0; i < n; ++i) to[i] = T(v[i]);
  }
};

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
  T* buffer = e.buffer.as<T>();
  const C lr = C(rule.lr), decay = C(rule.weight_decay), sign = rule.maximize ? C(-1) : C(1);
  // The first step takes the gradient as it is: nothing of a buffer that holds nothing.
  const C keep = e.first ? C(0) : C(rule.momentum), take = e.first ? C(1) : C(1 - rule.dampening);
  const C momentum = C(rule.momentum);
  for (int64_t at = begin; at < end; at += kBlock) {
    int64_t n = std::min<int64_t>(kBlock, end - at);
    Block<T> p, g, b;
    p.load(parameter + at, n);
    g.load(gradient + at, n);
    for (int i = 0; i < kBlock; ++i) g.v[i] = sign * g.v[i] + decay * p.v[i];
    if (buffer) {
      b.load(buffer + at, e.first ? 0 : n);
      for (int i = 0; i < kBlock; ++i) b.v[i] = keep * b.v[i] + take * g.v[i];
      b.store(buffer + at, n);
      if (rule.nesterov)
        for (int i = 0; i < kBlock; ++i) g.v[i] += momentum * b.v[i];
      else
        g = b;
    }
    for (int i = 0; i < kBlock; ++i) p.v[i] -= lr * g.v[i];
    p.store(parameter + at, n);
  }
}

template <class T>
void adam_chunk(const AdamEntry& e, const AdamRule& rule, int64_t begin, int64_t end) {
  using C = Compute<T>;
  T* parameter = e.parameter.as<T>();
  const T* gradient = e.gradient.as<T>();
  T *first = e.exp_avg.as<T>(), *second = e.exp_avg_sq.as<T>();
  const double correction1 = 1 - std::pow(rule.beta1, double(e.step));
  const double correction2 = 1 - std::pow(rule.beta2, double(e.step));
  const C take1 = C(1 - rule.beta1), keep2 = C(rule.beta2), take2 = C(1 - rule.beta2);
  const C size = C(rule.lr / correction1), root2 = C(std::sqrt(correction2)), eps = C(rule.eps);
  const C sign = rule.maximize ? C(-1) : C(1);
  const C decay = rule.decoupled ? C(0) : C(rule.weight_decay);
  const C shrink = rule.decoupled ? C(1 - rule.lr * rule.weight_decay) : C(1);
  for (int64_t at = begin; at < end; at += kBlock) {
    int64_t n = std::min<int64_t>(kBlock, end - at);
    Block<T> p, g, m, v;
    p.load(parameter + at, n);
    g.load(gradient + at, n);
    m.load(first + at, n);
    v.load(second + at, n);
    for (int i = 0; i < kBlock; ++i) {
      C grad = sign * g.v[i] + decay * p.v[i];
      m.v[i] += take1 * (grad - m.v[i]);
      v.v[i] = keep2 * v.v[i] + take2 * grad * grad;
      p.v[i] = shrink * p.v[i] - size * (m.v[i] / (std::sqrt(v.v[i]) / root2 + eps));
    }
    p.store(parameter + at, n);
    m.store(first + at, n);
    v.store(second + at, n);
  }
}

// The partial sums of one chunk, one per place in the block, so that many add up at once.
template <class T, class Term>
double sum_chunk(const T* x, int64_t begin, int64_t end, Term&& term) {
  double sums[kBlock] = {};
  for (int64_t at = begin; at < end; at += kBlock) {
    Block<T> b;
    b.load(x + at, std::min<int64_t>(kBlock, end - at));
    for (int i = 0; i < kBlock; ++i) sums[i] += term(double(b.v[i]));
  }
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
    visit_parameter(x.dtype, [&]<class T>() { result = map(x.as<T>(), chunk.begin, chunk.end); });
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
        visit_parameter(x.dtype, [&]<class T>() {
          T* data = x.as<T>();
          for (int64_t at = begin; at < end; at += kBlock) {
            int64_t n = std::min<int64_t>(kBlock, end - at);
            Block<T> b;
            b.load(data + at, n);
            for (int i = 0; i < kBlock; ++i) b.v[i] = Compute<T>(change(double(b.v[i])));
            b.store(data + at, n);
          }
        });
      });
}

}  // namespace

void sgd(Cpu, std::span<const SgdEntry> entries, const SgdRule& rule) {
  for_chunks(
      entries, [](const SgdEntry& e) { return e.parameter.numel; },
      [&](const SgdEntry& e, int64_t begin, int64_t end) {
        visit_parameter(e.parameter.dtype, [&]<class T>() { sgd_chunk<T>(e, rule, begin, end); });
      });
}

void adam(Cpu, std::span<const AdamEntry> entries, const AdamRule& rule) {
  for_chunks(
      entries, [](const AdamEntry& e) { return e.parameter.numel; },
      [&](const AdamEntry& e, int64_t begin, int64_t end) {
        visit_parameter(e.parameter.dtype, [&]<class T>() { adam_chunk<T>(e, rule, begin, end); });
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
