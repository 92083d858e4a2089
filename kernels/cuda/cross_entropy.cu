// Cross entropy of logits with class indices, and its derivative; formulas in cross_entropy.h. A
// warp has one row and walks over its classes, for the largest, for the sum, and for the result.
#include "tapegrad/kernels/cross_entropy.h"

#include "tapegrad/kernels/cuda/block_reduce.cuh"
#include "tapegrad/kernels/cuda/check_range.cuh"

namespace tg::kernels {
namespace {

// Rows in logical order, which targets and losses are counted in: places of logits and of their
// gradient in bytes, and steps from class to class in elements.
struct Rows {
  gpu::Strided<1> loops;
  int64_t classes, step[2];
};

Rows rows_of(View logits, View dlogits) {
  Rows r{};
  r.classes = logits.size(1);
  r.step[0] = logits.stride(1);
  r.step[1] = dlogits.stride(1);
  r.loops.numel = 1;
  const int64_t bytes = int64_t(size_of(logits.dtype));
  for (int d = 0; d < logits.rank(); ++d) {
    if (d == 1) continue;
    const int at = r.loops.rank++;
    r.loops.size[at] = logits.size(d);
    r.loops.step[0][at] = logits.stride(d) * bytes;
    r.loops.step[1][at] = dlogits.stride(d) * bytes;
    r.loops.numel *= logits.size(d);
  }
  return r;
}

// The b_c of the header.
template <class S>
struct Coefficients {
  const S* weights;  // null: all 1
  S keep, spread;    // 1 - smoothing, smoothing / classes
  __device__ S weight(int64_t c) const { return weights ? weights[c] : S(1); }
  __device__ S of(int64_t c, int64_t target) const {
    return (c == target ? keep * weight(c) : S(0)) + spread * weight(c);
  }
};

template <class T>
__global__ void loss_kernel(Rows rows, Coefficients<gpu::Computed<T>> b, int64_t ignored,
                            const char* logits, const int64_t* targets, gpu::Computed<T>* losses,
                            gpu::Computed<T>* log_sums) {
  using S = gpu::Computed<T>;
  const int lane = int(threadIdx.x % 32);
  for (int64_t r = gpu::first_index() / 32; r < rows.loops.numel; r += gpu::index_step() / 32) {
    int64_t place[2];
    gpu::find_places(rows.loops, r, place);
    const T* x = reinterpret_cast<const T*>(logits + place[0]);
    auto at = [&](int64_t c) { return gpu::widen(x[c * rows.step[0]]); };
    const int64_t target = targets[r];
    S largest = -std::numeric_limits<S>::infinity();
    for (int64_t c = lane; c < rows.classes; c += 32) largest = gpu::Max()(largest, at(c));
    largest = gpu::warp_total(largest, gpu::Max());
    S sum = 0;
    for (int64_t c = lane; c < rows.classes; c += 32) sum += exp(at(c) - largest);
    const S log_sum = log(gpu::warp_total(sum, gpu::Add()));
    // -log p_c = log_sum - (x_c - largest), by differences that keep their digits.
    S loss = 0;
    if (b.spread > 0)
      for (int64_t c = lane; c < rows.classes; c += 32)
        loss += b.spread * b.weight(c) * (log_sum - (at(c) - largest));
    loss = gpu::warp_total(loss, gpu::Add());
    if (lane != 0) continue;
    const bool counts = target != ignored;
    if (counts) loss += b.keep * b.weight(target) * (log_sum - (at(target) - largest));
    losses[r] = counts ? loss : S(0);
    log_sums[r] = counts ? largest + log_sum : S(0);
  }
}

// totals: the sum of the losses, and of the weights of rows that count; one block, in order
template <class S>
__global__ void totals_kernel(const S* losses, const int64_t* targets, const S* weights,
                              int64_t ignored, int64_t rows, S* totals) {
  double loss = 0, weight = 0;
  for (int64_t r = threadIdx.x; r < rows; r += gpu::kThreads) {
    loss += losses[r];
    if (targets[r] != ignored) weight += weights ? double(weights[targets[r]]) : 1.0;
  }
  loss = gpu::block_total<gpu::kThreads>(loss, gpu::Add());
  weight = gpu::block_total<gpu::kThreads>(weight, gpu::Add());
  if (threadIdx.x == 0) {
    totals[0] = S(loss);
    totals[1] = S(weight);
  }
}

// dx = scale ((sum of b) p - b)
template <class T>
__global__ void gradient_kernel(Rows rows, Coefficients<gpu::Computed<T>> b, int64_t ignored,
                                const char* logits, const int64_t* targets,
                                const gpu::Computed<T>* log_sums, const gpu::Computed<T>* scale,
                                bool one_scale, char* dlogits) {
  using S = gpu::Computed<T>;
  const int lane = int(threadIdx.x % 32);
  for (int64_t r = gpu::first_index() / 32; r < rows.loops.numel; r += gpu::index_step() / 32) {
    int64_t place[2];
    gpu::find_places(rows.loops, r, place);
    const T* x = reinterpret_cast<const T*>(logits + place[0]);
    T* dx = reinterpret_cast<T*>(dlogits + place[1]);
    const int64_t target = targets[r];
    const bool counts = target != ignored;
    const S factor = counts ? scale[one_scale ? 0 : r] : S(0);
    S total = 0;
    for (int64_t c = lane; c < rows.classes && counts; c += 32) total += b.of(c, target);
    total = gpu::warp_total(total, gpu::Add());
    for (int64_t c = lane; c < rows.classes; c += 32) {
      S d = 0;
      if (counts)
        d = factor * (total * exp(gpu::widen(x[c * rows.step[0]]) - log_sums[r]) - b.of(c, target));
      dx[c * rows.step[1]] = gpu::narrow<T>(d);
    }
  }
}

template <class S>
Coefficients<S> coefficients(View weight, int64_t classes, double smoothing) {
  return {weight.as<S>(), S(1 - smoothing), S(smoothing / double(classes))};
}

}  // namespace

void check_targets(Cuda, View target, int64_t classes, int64_t ignore_index) {
  const gpu::OutOfRange bad = gpu::find_outside(target, {0, classes, true, ignore_index});
  check<IndexError>(bad.position < 0, "target", bad.value, "of row", bad.position,
                    "is outside of [0,", classes, ") and not the ignore_index", ignore_index);
}

void cross_entropy(Cuda, View logits, View target, View weight, MutView losses, MutView log_sums,
                   MutView totals, CrossEntropy options) {
  const Rows rows = rows_of(logits, logits);
  visit_any_float(logits.dtype, [&]<class T>() {
    using S = gpu::Computed<T>;
    const auto b = coefficients<S>(weight, rows.classes, options.smoothing);
    if (rows.loops.numel > 0)
      gpu::start<loss_kernel<T>>({gpu::blocks_for_each(rows.loops.numel * 32), gpu::kThreads}, rows,
                                 b, options.ignore_index, logits.as<char>(), target.as<int64_t>(),
                                 losses.as<S>(), log_sums.as<S>());
    gpu::start<totals_kernel<S>>({1, gpu::kThreads}, losses.as<S>(), target.as<int64_t>(),
                                 weight.as<S>(), options.ignore_index, rows.loops.numel,
                                 totals.as<S>());
  });
}

void cross_entropy_backward(Cuda, View logits, View target, View weight, View log_sums, View scale,
                            MutView dlogits, CrossEntropy options) {
  if (dlogits.numel == 0) return;
  const Rows rows = rows_of(logits, dlogits);
  visit_any_float(logits.dtype, [&]<class T>() {
    using S = gpu::Computed<T>;
    const auto b = coefficients<S>(weight, rows.classes, options.smoothing);
    gpu::start<gradient_kernel<T>>({gpu::blocks_for_each(rows.loops.numel * 32), gpu::kThreads},
                                   rows, b, options.ignore_index, logits.as<char>(),
                                   target.as<int64_t>(), log_sums.as<S>(), scale.as<S>(),
                                   scale.numel == 1, dlogits.as<char>());
  });
}

}  // namespace tg::kernels
