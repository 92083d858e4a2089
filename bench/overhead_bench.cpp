// What a call costs when there is next to nothing to compute.
#include <benchmark/benchmark.h>

#include "tapegrad/tapegrad.h"

namespace {

using namespace tg;

void add_small(benchmark::State& state, const Tensor& x, const Tensor& y) {
  set_num_threads(1);
  for (auto _ : state) benchmark::DoNotOptimize(x + y);
}

void chain(benchmark::State& state, bool backward) {
  set_num_threads(1);
  Tensor x = ones({4}).requires_grad_(), y = ones({4}), seed = ones({4});
  for (auto _ : state) {
    Tensor z = x;
    for (int i = 0; i < 100; ++i) z = z + y;
    if (backward) z.backward(seed);
  }
  state.SetItemsProcessed(state.iterations() * 100);  // items_per_second: operators
}

const Tensor four = ones({4}), four_grad = ones({4}).requires_grad_();
const Tensor four_f64 = ones({4}, f64), one = ones({1});
const Tensor square = ones({2, 2}), turned = t(ones({2, 2}));

BENCHMARK_CAPTURE(add_small, no_grad_4, four, ones({4}));
BENCHMARK_CAPTURE(add_small, grad_4, four_grad, ones({4}));
BENCHMARK_CAPTURE(add_small, broadcast_4_1, four, one);
BENCHMARK_CAPTURE(add_small, transposed_2x2, square, turned);
BENCHMARK_CAPTURE(add_small, f64_4, four_f64, ones({4}, f64));
BENCHMARK_CAPTURE(chain, forward_100, false);
BENCHMARK_CAPTURE(chain, forward_backward_100, true);

void small_matmul(benchmark::State& state) {
  set_num_threads(1);
  for (auto _ : state) benchmark::DoNotOptimize(matmul(square, square));
}
BENCHMARK(small_matmul);

void view_4(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(view(four, {2, 2}));
}
BENCHMARK(view_4);

void empty_4(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(empty({4}));
}
BENCHMARK(empty_4);

}  // namespace
