#include "tapegrad/tools/app/bench/roofs.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <fstream>
#include <limits>
#include <memory>
#include <string>

#include "tapegrad/core/parallel.h"
#include "tapegrad/kernels/cpu/gemm/simd.h"
#include "tapegrad/kernels/cpu/scratch.h"

namespace tg::app {
namespace {

using Simd = kernels::gemm::Simd<float>;
using Memory = kernels::Scratch<float>;

// Tells the compiler that somebody looks at this value.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "r"(&value) : "memory");
}

// Twelve sums that do not wait for each other: enough for two multiply-adds in each cycle, of which
// each takes four or five. They begin differently, or the compiler would see that they are equal.
constexpr int kChains = 12;
constexpr int64_t kSteps = 100000;
void multiply_and_add() {
  const float near_one = 0.999f, little = 0.001f;
  const Simd::Register factor = Simd::broadcast(&near_one), addend = Simd::broadcast(&little);
  Simd::Register chain[kChains];
#pragma GCC unroll 12
  for (int c = 0; c < kChains; ++c) {
    const float start = 0.001f * float(c);
    chain[c] = Simd::broadcast(&start);
  }
  for (int64_t i = 0; i < kSteps; ++i) {
#pragma GCC unroll 12
    for (auto& c : chain) c = Simd::multiply_add(c, factor, addend);
  }
  keep(chain);
}

constexpr int64_t kPiece = 8 * Simd::kLanes;  // values of a round of the loops below

void read(const float* x, int64_t n) {
  Simd::Register sum[8];
#pragma GCC unroll 8
  for (auto& s : sum) s = Simd::zero();
  for (int64_t i = 0; i < n; i += kPiece) {
#pragma GCC unroll 8
    for (int c = 0; c < 8; ++c) sum[c] = Simd::add(sum[c], Simd::load(x + i + c * Simd::kLanes));
  }
  keep(sum);
}

void copy(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += kPiece) {
#pragma GCC unroll 8
    for (int64_t c = 0; c < kPiece; c += Simd::kLanes)
      Simd::store(y + i + c, Simd::load(x + i + c));
  }
  keep(y);
}

// Stores that do not fetch the line they write to.
void copy_past_caches(const float* x, float* y, int64_t n) {
#ifdef __SSE2__
  for (int64_t i = 0; i < n; i += 4) _mm_stream_ps(y + i, _mm_loadu_ps(x + i));
  _mm_sfence();
#else
  copy(x, y, n);
#endif
}

template <class F>
void on_all_threads(F&& work) {
  parallel_for(num_threads(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) work(t);
  });
}

// What `work` does with n values of x (and of y) for each thread, often enough to be timed.
Work bandwidth(const std::string& name, double bytes, bool writes,
               void (*work)(const float* x, float* y, int64_t n)) {
  const int64_t threads = num_threads();
  const int64_t n = int64_t(bytes) / (writes ? 2 : 1) / int64_t(sizeof(float)) / kPiece * kPiece;
  const int64_t repeats = std::max<int64_t>(1, (4 << 20) / n);
  const double moved = double(n * repeats * threads) * sizeof(float) * (writes ? 2 : 1);
  return {"roof " + name, [=]() -> Ready {
            auto x = std::make_shared<Memory>(n * threads);
            auto y = std::make_shared<Memory>(writes ? n * threads : 0);
            std::fill_n(x->data(), n * threads, 1.0f);
            const auto call = [=] {
              on_all_threads([&](int64_t t) {
                for (int64_t r = 0; r < repeats; ++r)
                  work(x->data() + t * n, writes ? y->data() + t * n : nullptr, n);
              });
            };
            return {call, 0, moved};
          }};
}

void read_only(const float* x, float*, int64_t n) { read(x, n); }

// The size of the data cache of a level, as the system describes the first processor.
double cache_bytes(int level, double otherwise) {
  for (int i = 0; i < 8; ++i) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    int found = 0;
    std::string kind;
    double size = 0;
    char unit = 0;
    std::ifstream(folder + "level") >> found;
    std::ifstream(folder + "type") >> kind;
    std::ifstream(folder + "size") >> size >> unit;  // "512K"
    if (found == level && kind != "Instruction" && size > 0)
      return size * (unit == 'K' ? 1024 : unit == 'M' ? 1 << 20 : 1);
  }
  return otherwise;
}

// Bytes that each thread works on to measure a level: half of its share, so that they surely fit;
// for the memory, several times the last cache.
double bytes_for(const std::vector<Level>& levels, size_t i) {
  const double threads = num_threads();
  if (i + 1 < levels.size()) return levels[i].bytes / threads / 2;
  return std::clamp(4 * levels[i - 1].bytes, 64e6, 256e6) / threads;
}

}  // namespace

std::vector<Level> memory_levels() {
  const double threads = num_threads();  // the first two levels belong to a core each
  return {{"L1", threads * cache_bytes(1, 32e3)},
          {"L2", threads * cache_bytes(2, 512e3)},
          {"L3", cache_bytes(3, 8e6)},
          {"memory", std::numeric_limits<double>::infinity()}};
}

std::vector<Work> roof_works() {
  std::vector<Work> works;
  works.push_back({"roof fma", []() -> Ready {
                     const auto call = [] { on_all_threads([](int64_t) { multiply_and_add(); }); };
                     return {call, 2.0 * kChains * Simd::kLanes * kSteps * num_threads(), 0};
                   }});
  const std::vector<Level> levels = memory_levels();
  for (size_t i = 0; i < levels.size(); ++i) {
    works.push_back(bandwidth(levels[i].name + " read", bytes_for(levels, i), false, read_only));
    works.push_back(bandwidth(levels[i].name + " copy", bytes_for(levels, i), true, copy));
  }
  works.push_back(bandwidth("memory copy past caches", bytes_for(levels, levels.size() - 1), true,
                            copy_past_caches));
  return works;
}

namespace {

// The fastest of the roofs whose names begin so.
const Result& best(const std::vector<Result>& roofs, const std::string& begin) {
  const auto rate = [&](const Result& r) {
    return r.name.starts_with(begin) ? (r.flops + r.bytes) / r.median() : 0;
  };
  return *std::max_element(roofs.begin(), roofs.end(),
                           [&](const Result& x, const Result& y) { return rate(x) < rate(y); });
}

}  // namespace

Bound bound(const std::vector<Result>& roofs, double flops, double bytes) {
  const std::vector<Level> levels = memory_levels();
  size_t level = 0;
  while (level + 1 < levels.size() && bytes > levels[level].bytes) ++level;
  const Result &arithmetic = best(roofs, "roof fma"),
               &transport = best(roofs, "roof " + levels[level].name);
  const double calculating = flops / arithmetic.flops * arithmetic.median();
  const double moving = bytes / transport.bytes * transport.median();
  return calculating > moving ? Bound{"arithmetic", arithmetic.name}
                              : Bound{levels[level].name, transport.name};
}

double share_of_roof(const Result& work, const Result& roof) {
  const double times = roof.flops > 0 ? work.flops / roof.flops : work.bytes / roof.bytes;
  Result shares;
  for (size_t i = 0; i < work.seconds.size(); ++i)
    shares.seconds.push_back(times * roof.seconds[i] / work.seconds[i]);
  return shares.median();
}

}  // namespace tg::app
