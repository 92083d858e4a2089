// Every operator of the table that names a large sample: time, and bytes or operations per second.
#include <benchmark/benchmark.h>

#include <algorithm>

#include "ops/table.h"
#include "tapegrad/autograd/engine.h"
#include "tapegrad/autograd/grad_mode.h"
#include "tapegrad/core/parallel.h"

namespace {

using namespace tg;
using namespace tg::test;

double bytes_of(const Tensors& list) {
  double bytes = 0;
  for (const Tensor& x : list) bytes += double(x.numel()) * double(size_of(x.dtype()));
  return bytes;
}

void count(benchmark::State& state, const Row& row, const Tensors& in, const Tensors& out) {
  using Counter = benchmark::Counter;
  state.counters["B/s"] =
      Counter(bytes_of(in) + bytes_of(out), Counter::kIsIterationInvariantRate, Counter::kIs1000);
  if (row.flops)
    state.counters["FLOP/s"] =
        Counter(row.flops(in, out), Counter::kIsIterationInvariantRate, Counter::kIs1000);
}

void forward(benchmark::State& state, const Row& row) {
  NoGradGuard no_grad;
  Sample sample = row.large();
  Tensors x = make_inputs(sample, f32), y;
  for (auto _ : state) benchmark::DoNotOptimize(y = sample.call(x));
  count(state, row, x, y);
}

void forward_backward(benchmark::State& state, const Row& row) {
  Sample sample = row.large();
  Tensors x = make_inputs(sample, f32, true), y = sample.call(x);
  if (!y[0].requires_grad()) {
    state.SkipWithError("has no derivative");
    return;
  }
  Tensor dy = make_gradient(y[0], 0);
  for (auto _ : state) {
    y = sample.call(x);
    backward({y[0]}, {dy});
    for (const Tensor& t : x)
      if (t.requires_grad()) t.set_grad({});
  }
}

// Registered before main runs, once for each row.
const bool registered = [] {
  for (const Family& family : families())
    for (const Row& row : family.rows) {
      if (!row.large) continue;
      benchmark::RegisterBenchmark((family.name + "/" + row.name + "/forward").c_str(),
                                   [&row](benchmark::State& s) { forward(s, row); })
          ->UseRealTime();
      bool gradient = std::find(row.dtypes.begin(), row.dtypes.end(), f64) != row.dtypes.end();
      for (const OptOut& o : row.opt_outs) gradient = gradient && o.part != Part::gradient;
      if (gradient)
        benchmark::RegisterBenchmark((family.name + "/" + row.name + "/forward_backward").c_str(),
                                     [&row](benchmark::State& s) { forward_backward(s, row); })
            ->UseRealTime();
    }
  return true;
}();

}  // namespace
