// One step of an optimizer over many tensors at once, and what clipping needs of gradients; the
// rules stand in kernels/optim.h.
//
// Memory policy: each element of parameter, gradient and state is read once and written once,
// neighbouring threads take neighbours. Sums run over fixed chunks, in one order.
#include "tapegrad/kernels/optim.h"

#include <cmath>
#include <vector>

#include "tapegrad/core/allocator.h"
#include "tapegrad/kernels/cuda/block_reduce.cuh"
#include "tapegrad/kernels/cuda/convert.cuh"
#include "tapegrad/kernels/cuda/tensor_list.cuh"

namespace tg::kernels {
namespace {

using gpu::TensorList;

// change(list, tensor, i) for every element of every tensor of the list.
template <class Change, int kArrays>
__global__ void change_kernel(TensorList<kArrays> list, Change change) {
  const gpu::Chunk chunk = gpu::chunk_of_block(list);
  for (int64_t i = chunk.begin + threadIdx.x; i < chunk.end; i += blockDim.x)
    change(list, chunk.tensor, i);
}

template <class T>
struct AdamChange {
  using S = gpu::Computed<T>;
  S sign, decay, shrink, take1, keep2, take2, eps;
  S size[gpu::kTensors], root2[gpu::kTensors];  // by each tensor's number of steps

  __device__ void operator()(const TensorList<4>& list, int tensor, int64_t i) const {
    T* p = static_cast<T*>(list.data[0][tensor]) + i;
    const T* g = static_cast<const T*>(list.data[1][tensor]) + i;
    T* m = static_cast<T*>(list.data[2][tensor]) + i;
    T* v = static_cast<T*>(list.data[3][tensor]) + i;
    const S old = gpu::widen(*p), grad = sign * gpu::widen(*g) + decay * old;
    S first = gpu::widen(*m), second = gpu::widen(*v);
    first += take1 * (grad - first);
    second = keep2 * second + take2 * grad * grad;
    *p = gpu::narrow<T>(shrink * old -
                        size[tensor] * (first / (sqrt(second) / root2[tensor] + eps)));
    *m = gpu::narrow<T>(first);
    *v = gpu::narrow<T>(second);
  }
};

template <class T>
struct SgdChange {
  using S = gpu::Computed<T>;
  S sign, decay, lr, momentum, take;
  bool nesterov;
  uint64_t first;  // a bit for each tensor: its buffer holds nothing yet

  __device__ void operator()(const TensorList<3>& list, int tensor, int64_t i) const {
    T* p = static_cast<T*>(list.data[0][tensor]) + i;
    const T* g = static_cast<const T*>(list.data[1][tensor]) + i;
    T* buffer = static_cast<T*>(list.data[2][tensor]);
    const S old = gpu::widen(*p);
    S grad = sign * gpu::widen(*g) + decay * old;
    if (buffer) {
      const S kept = first >> tensor & 1 ? grad : momentum * gpu::widen(buffer[i]) + take * grad;
      buffer[i] = gpu::narrow<T>(kept);
      grad = nesterov ? grad + momentum * kept : kept;
    }
    *p = gpu::narrow<T>(old - lr * grad);
  }
};

template <class T>
struct Scale {
  double factor;
  __device__ void operator()(const TensorList<1>& list, int tensor, int64_t i) const {
    T* x = static_cast<T*>(list.data[0][tensor]) + i;
    *x = gpu::narrow<T>(gpu::Computed<T>(double(gpu::widen(*x)) * factor));
  }
};
template <class T>
struct Limit {
  double limit;
  __device__ void operator()(const TensorList<1>& list, int tensor, int64_t i) const {
    T* x = static_cast<T*>(list.data[0][tensor]) + i;
    const double v = gpu::widen(*x);
    *x = gpu::narrow<T>(gpu::Computed<T>(v < -limit ? -limit : v > limit ? limit : v));
  }
};

template <class Change, int kArrays>
void start_change(const TensorList<kArrays>& list, const Change& change) {
  if (list.chunks() > 0)
    gpu::start<change_kernel<Change, kArrays>>({unsigned(list.chunks()), gpu::kThreads}, list,
                                               change);
}

// Calls run(first, last) for stretches of entries of one dtype that fit into a launch.
template <class Entries, class TypeOf, class Run>
void in_stretches(const Entries& entries, TypeOf dtype_of_entry, Run run) {
  for (size_t first = 0; first < entries.size();) {
    size_t last = first;
    while (last < entries.size() && last - first < size_t(gpu::kTensors) &&
           dtype_of_entry(entries[last]) == dtype_of_entry(entries[first]))
      ++last;
    run(first, last);
    first = last;
  }
}

template <template <class> class Change>
void change_all(std::span<const MutView> tensors, double number) {
  in_stretches(
      tensors, [](const MutView& x) { return x.dtype; },
      [&](size_t first, size_t last) {
        TensorList<1> list;
        for (size_t e = first; e < last; ++e) list.add(tensors[e].numel, {tensors[e].data});
        visit_any_float(tensors[first].dtype,
                        [&]<class T>() { start_change(list, Change<T>{number}); });
      });
}

struct PowerSum {
  double power;
  __device__ double map(double v) const { return power == 2 ? v * v : pow(fabs(v), power); }
  __device__ double operator()(double a, double b) const { return a + b; }
};
struct Largest {
  __device__ double map(double v) const { return fabs(v); }
  __device__ double operator()(double a, double b) const { return a != a || a > b ? a : b; }
};

// totals[chunk] = what the chunk's elements add up to
template <class T, class Rule>
__global__ void chunk_totals_kernel(TensorList<1> list, Rule rule, double* totals) {
  const gpu::Chunk chunk = gpu::chunk_of_block(list);
  const T* x = static_cast<const T*>(list.data[0][chunk.tensor]);
  double total = 0;
  for (int64_t i = chunk.begin + threadIdx.x; i < chunk.end; i += blockDim.x)
    total = rule(total, rule.map(double(gpu::widen(x[i]))));
  total = gpu::block_total<gpu::kThreads>(total, rule);
  if (threadIdx.x == 0) totals[blockIdx.x] = total;
}

template <class Rule, class Join>
double total_of(std::span<const View> tensors, const Rule& rule, Join join) {
  double result = 0;
  in_stretches(
      tensors, [](const View& x) { return x.dtype; },
      [&](size_t first, size_t last) {
        TensorList<1> list;
        for (size_t e = first; e < last; ++e) list.add(tensors[e].numel, {tensors[e].data});
        if (list.chunks() == 0) return;
        const size_t bytes = size_t(list.chunks()) * sizeof(double);
        Workspace workspace(bytes, cuda::current_device());
        visit_any_float(tensors[first].dtype, [&]<class T>() {
          gpu::start<chunk_totals_kernel<T, Rule>>({unsigned(list.chunks()), gpu::kThreads}, list,
                                                   rule, workspace.as<double>());
        });
        std::vector<double> totals(size_t(list.chunks()));
        cuda::copy(kCpuDevice, totals.data(), cuda::current_device(), workspace.as<double>(),
                   bytes);
        for (double t : totals) result = join(result, t);
      });
  return result;
}

}  // namespace

void adam(Cuda, std::span<const AdamEntry> entries, const AdamRule& rule) {
  in_stretches(
      entries, [](const AdamEntry& e) { return e.parameter.dtype; },
      [&](size_t first, size_t last) {
        visit_any_float(entries[first].parameter.dtype, [&]<class T>() {
          using S = gpu::Computed<T>;
          AdamChange<T> change{};
          change.sign = rule.maximize ? S(-1) : S(1);
          change.decay = rule.decoupled ? S(0) : S(rule.weight_decay);
          change.shrink = rule.decoupled ? S(1 - rule.lr * rule.weight_decay) : S(1);
          change.take1 = S(1 - rule.beta1);
          change.keep2 = S(rule.beta2);
          change.take2 = S(1 - rule.beta2);
          change.eps = S(rule.eps);
          TensorList<4> list;
          for (size_t i = first; i < last; ++i) {
            const AdamEntry& e = entries[i];
            change.size[list.count] = S(rule.lr / (1 - std::pow(rule.beta1, double(e.step))));
            change.root2[list.count] = S(std::sqrt(1 - std::pow(rule.beta2, double(e.step))));
            list.add(e.parameter.numel,
                     {e.parameter.data, e.gradient.data, e.exp_avg.data, e.exp_avg_sq.data});
          }
          start_change(list, change);
        });
      });
}

void sgd(Cuda, std::span<const SgdEntry> entries, const SgdRule& rule) {
  in_stretches(
      entries, [](const SgdEntry& e) { return e.parameter.dtype; },
      [&](size_t first, size_t last) {
        visit_any_float(entries[first].parameter.dtype, [&]<class T>() {
          using S = gpu::Computed<T>;
          SgdChange<T> change{};
          change.sign = rule.maximize ? S(-1) : S(1);
          change.decay = S(rule.weight_decay);
          change.lr = S(rule.lr);
          change.momentum = S(rule.momentum);
          change.take = S(1 - rule.dampening);
          change.nesterov = rule.nesterov;
          TensorList<3> list;
          for (size_t i = first; i < last; ++i) {
            const SgdEntry& e = entries[i];
            change.first |= uint64_t(e.first) << list.count;
            list.add(e.parameter.numel, {e.parameter.data, e.gradient.data, e.buffer.data});
          }
          start_change(list, change);
        });
      });
}

double sum_of_powers(Cuda, std::span<const View> tensors, double p) {
  return total_of(tensors, PowerSum{p}, [](double a, double b) { return a + b; });
}

double largest_magnitude(Cuda, std::span<const View> tensors) {
  return total_of(tensors, Largest(),
                  [](double a, double b) { return std::isnan(a) || a > b ? a : b; });
}

void scale(Cuda, std::span<const MutView> tensors, double factor) {
  change_all<Scale>(tensors, factor);
}
void limit(Cuda, std::span<const MutView> tensors, double limit) {
  change_all<Limit>(tensors, limit);
}

}  // namespace tg::kernels
