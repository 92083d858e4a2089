#include "tapegrad/autograd/ops/random.h"

#include <cmath>
#include <limits>

#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/scalars.h"
#include "tapegrad/kernels/copy.h"
#include "tapegrad/kernels/random.h"
#include "tapegrad/kernels/sort.h"

namespace tg {
namespace {

Generator& source(Generator* generator, Device device) {
  return generator ? *generator : default_generator(device);
}

void check_float(DType t) {
  check<DTypeError>(is_floating(t), "draws real numbers, but the tensor is", t);
}

// Fills x: run(device, contiguous view). Elements are drawn in logical order, whatever the strides.
template <class F>
void drawn_into(const Tensor& x, F run) {
  on(x.device(), [&](auto device) {
    if (x.is_contiguous()) return run(device, x.write());
    Tensor draws = empty(x.shape(), x.options());
    run(device, draws.write());
    kernels::copy(device, draws.read(), x.write());
  });
}

void draw_uniform(const Tensor& x, double low, double high, Generator* generator) {
  check_float(x.dtype());
  check<ValueError>(low <= high && std::isfinite(high - low), "no range of finite width:", low,
                    high);
  RandomState state =
      source(generator, x.device()).reserve(kernels::random_blocks(x.numel(), x.dtype()));
  drawn_into(x, [&](auto device, MutView y) { kernels::uniform(device, y, low, high, state); });
}

void draw_normal(const Tensor& x, double mean, double std, Generator* generator) {
  check_float(x.dtype());
  check<ValueError>(std::isfinite(mean) && std >= 0 && std::isfinite(std),
                    "needs a finite mean and a finite std of 0 or more, got", mean, std);
  RandomState state =
      source(generator, x.device()).reserve(kernels::random_blocks(x.numel(), x.dtype()));
  drawn_into(x, [&](auto device, MutView y) { kernels::normal(device, y, mean, std, state); });
}

}  // namespace

Tensor rand(const Shape& shape, TensorOptions options, Generator* generator) {
  Scope scope("rand");
  Tensor y = empty(shape, options);
  draw_uniform(y, 0, 1, generator);
  return y;
}

Tensor randn(const Shape& shape, TensorOptions options, Generator* generator) {
  Scope scope("randn");
  Tensor y = empty(shape, options);
  draw_normal(y, 0, 1, generator);
  return y;
}

Tensor randint(int64_t low, int64_t high, const Shape& shape, TensorOptions options,
               Generator* generator) {
  Scope scope("randint");
  check<ValueError>(low < high, "low must be below high, got", low, high);
  check<DTypeError>(options.dtype != DType::boolean, "draws numbers, not bool; use bernoulli");
  check_fits(low, options.dtype);
  check_fits(high - 1, options.dtype);
  Tensor y = empty(shape, options);
  RandomState state = source(generator, options.device).reserve(blocks_for(y.numel(), 2));
  uint64_t range = uint64_t(high) - uint64_t(low);
  on(y.device(), [&](auto device) { kernels::randint(device, y.write(), low, range, state); });
  return y;
}

// The order of n numbers of 64 random bits.
Tensor randperm(int64_t n, Generator* generator) {
  Scope scope("randperm");
  check<ValueError>(n >= 0, "n must be 0 or more, got", n);
  Tensor keys = empty({n}, i64), sorted = empty({n}, i64), order = empty({n}, i64);
  RandomState state = source(generator, keys.device()).reserve(blocks_for(n, 2));
  on(keys.device(), [&](auto device) {
    kernels::randint(device, keys.write(), std::numeric_limits<int64_t>::min(), 0, state);
    kernels::sort(device, keys.read(), 0, /*descending=*/false, sorted.write(), order.write());
  });
  return order;
}

Tensor bernoulli(const Tensor& probability, Generator* generator) {
  Op op("bernoulli");
  Tensor p = op.in(probability);
  check_float(p.dtype());
  if (!p.is_contiguous()) {
    NoGradGuard no_grad;
    p = contiguous(p);
  }
  Tensor y = empty(p.shape(), p.options());
  RandomState state =
      source(generator, p.device()).reserve(kernels::random_blocks(p.numel(), p.dtype()));
  on(y.device(), [&](auto device) { kernels::bernoulli(device, p.read(), y.write(), state); });
  return y;
}

const Tensor& uniform_(const Tensor& x, double low, double high, Generator* generator) {
  Op op("uniform_");
  op.in(x);
  op.prepare_inplace(x);
  draw_uniform(x, low, high, generator);
  return op.record_inplace(x, {x}, [](const Tensor&, Needs) -> Grads { return {Tensor()}; });
}

const Tensor& normal_(const Tensor& x, double mean, double std, Generator* generator) {
  Op op("normal_");
  op.in(x);
  op.prepare_inplace(x);
  draw_normal(x, mean, std, generator);
  return op.record_inplace(x, {x}, [](const Tensor&, Needs) -> Grads { return {Tensor()}; });
}

}  // namespace tg
