// Elementwise kernels from a formula, the twin of kernels/cpu/elementwise.h:
//
//   y[i] = formula(x0[i], x1[i], ...)
//
// A formula is a struct with a __device__ operator() on the types that are computed in. Inputs
// broadcast to y's shape; any strides; y may be one of the inputs. There are two kernels:
//
//   flat     all operands lie in memory in the same order without gaps, or are one value for all:
//            every thread moves 16 bytes of each at a time. f32, f16 and bf16.
//   strided  anything else: every thread finds the place of its element in each operand by dividing
//            its index by the sizes. Dtypes are looked at when it runs.
//
// Memory policy: every element is read once and written once; nothing is kept.
#pragma once
#include <array>
#include <span>
#include <utility>

#include "tapegrad/core/error.h"
#include "tapegrad/core/scalar.h"
#include "tapegrad/kernels/cuda/convert.cuh"
#include "tapegrad/kernels/cuda/start.cuh"
#include "tapegrad/kernels/walk.h"

namespace tg::gpu {

using kernels::Layout;
using kernels::layout_of;
using kernels::plan_walk;
using kernels::Walk;

// The value of a functor of kernels/unary_ops.h or binary_ops.h as a formula.
template <class F>
struct Value {
  F functor;
  template <class... S>
  __device__ auto operator()(S... x) const {
    return functor.f(x...);
  }
};

// A view, or a number that the launch carries with it.
struct Operand {
  View view;
  bool is_number = false;
  double real = 0;
  int64_t integer = 0;
  Operand(View v) : view(v) {}
  Operand(Scalar s) : is_number(true), real(s.to_double()), integer(s.to_int64()) {}
};

// Loops over operands; steps in bytes. Operand 0 is the output.
template <int kInputs>
struct Strided {
  int rank;
  int64_t numel;
  int64_t size[kMaxRank];
  int64_t step[kInputs + 1][kMaxRank];
};

// The loops of a walk over kInputs + 1 operands.
template <int kInputs>
Strided<kInputs> loops_of(const Walk& walk) {
  Strided<kInputs> loops{walk.rank, walk.numel, {}, {}};
  for (int d = 0; d < walk.rank; ++d) {
    loops.size[d] = walk.size[d];
    for (int k = 0; k <= kInputs; ++k) loops.step[k][d] = walk.step[k][d];
  }
  return loops;
}

// Loops over views of one shape in logical order, nothing merged: element numbers mean something.
template <class... Views>
Strided<int(sizeof...(Views)) - 1> in_logical_order(const Views&... operands) {
  const View views[] = {operands...};
  Strided<int(sizeof...(Views)) - 1> loops{views[0].rank(), views[0].numel, {}, {}};
  for (int d = 0; d < loops.rank; ++d) {
    loops.size[d] = views[0].size(d);
    for (size_t k = 0; k < sizeof...(Views); ++k)
      loops.step[k][d] = views[k].stride(d) * int64_t(size_of(views[k].dtype));
  }
  return loops;
}

template <int kInputs>
struct Sources {
  const char* data[kInputs];  // null: a number
  DType dtype[kInputs];
  int64_t bits[kInputs];  // the number, in the type that is computed in
};

// Where element i lies in each operand.
template <int kInputs>
__device__ inline void find_places(const Strided<kInputs>& loops, int64_t i,
                                   int64_t (&offset)[kInputs + 1]) {
  for (int k = 0; k <= kInputs; ++k) offset[k] = 0;
  for (int d = loops.rank - 1; d >= 0; --d) {
    const int64_t rest = quotient(i, loops.size[d]), at = i - rest * loops.size[d];
    for (int k = 0; k <= kInputs; ++k) offset[k] += at * loops.step[k][d];
    i = rest;
  }
}

template <class S, int kInputs>
__device__ inline S input(const Sources<kInputs>& in, int k, int64_t offset) {
  if (in.data[k]) return load_as<S>(in.dtype[k], in.data[k] + offset);
  S number;
  memcpy(&number, &in.bits[k], sizeof number);
  return number;
}

template <class Formula, class Out, class... In, size_t... kIndex>
__device__ inline Out evaluate(const Formula& formula, const Sources<int(sizeof...(In))>& in,
                               const int64_t* offset, std::index_sequence<kIndex...>) {
  return formula(input<In>(in, int(kIndex), offset[kIndex + 1])...);
}

// out [numel], in the layout that the loops describe
template <class Formula, class Out, class... In>
__global__ void strided_kernel(Formula formula, Strided<int(sizeof...(In))> loops,
                               Sources<int(sizeof...(In))> in, char* out, DType out_dtype) {
  for (int64_t i = first_index(); i < loops.numel; i += index_step()) {
    int64_t offset[sizeof...(In) + 1];
    find_places(loops, i, offset);
    const Out y = evaluate<Formula, Out, In...>(formula, in, offset,
                                                std::make_index_sequence<sizeof...(In)>());
    store_as<Out>(out_dtype, out + offset[0], y);
  }
}

// 16 bytes of elements.
template <class T>
struct alignas(16) Pack {
  static constexpr int kCount = 16 / sizeof(T);
  T v[kCount];
};

template <int kInputs>
struct FlatSources {
  const void* data[kInputs];
  bool single[kInputs];  // one value for all elements
  float number[kInputs];
};

template <class T, int kInputs>
__device__ inline Pack<T> flat_input(const FlatSources<kInputs>& in, int k, int64_t pack) {
  const T* p = static_cast<const T*>(in.data[k]);
  if (!in.single[k]) return load<Pack<T>>(p + pack * Pack<T>::kCount);
  Pack<T> same;
  const T value = p ? *p : narrow<T>(in.number[k]);
  for (int e = 0; e < Pack<T>::kCount; ++e) same.v[e] = value;
  return same;
}

template <class T, int kInputs>
__device__ inline float flat_element(const FlatSources<kInputs>& in, int k, int64_t i) {
  const T* p = static_cast<const T*>(in.data[k]);
  if (!p) return in.number[k];
  return widen(p[in.single[k] ? 0 : i]);
}

template <class T, class Formula, int kInputs, size_t... kIndex>
__device__ inline void flat_body(const Formula& formula, const FlatSources<kInputs>& in, T* out,
                                 int64_t numel, std::index_sequence<kIndex...>) {
  constexpr int kCount = Pack<T>::kCount;
  const int64_t packs = numel / kCount;
  for (int64_t p = first_index(); p < packs; p += index_step()) {
    const Pack<T> x[] = {flat_input<T>(in, int(kIndex), p)...};
    Pack<T> y;
#pragma unroll
    for (int e = 0; e < kCount; ++e) y.v[e] = narrow<T>(formula(widen(x[kIndex].v[e])...));
    store(out + p * kCount, y);
  }
  // The odd elements at the end, one a thread.
  const int64_t i = packs * kCount + first_index();
  if (i < numel) out[i] = narrow<T>(formula(flat_element<T>(in, int(kIndex), i)...));
}

template <class T, class Formula, int kInputs>
__global__ void flat_kernel(Formula formula, FlatSources<kInputs> in, T* out, int64_t numel) {
  flat_body<T>(formula, in, out, numel, std::make_index_sequence<kInputs>());
}

// ---- Launchers

template <int kInputs>
Walk plan(const std::array<Operand, kInputs>& in, MutView y) {
  static const Shape none;
  Layout layouts[kInputs + 1] = {layout_of(y)};
  for (int k = 0; k < kInputs; ++k)
    layouts[k + 1] =
        in[size_t(k)].is_number ? Layout{&none, &none, 0} : layout_of(in[size_t(k)].view);
  return plan_walk(layouts);
}

template <class Formula, class Out, class... In>
void strided(const Formula& formula, const std::array<Operand, sizeof...(In)>& in, MutView y,
             const Walk& walk) {
  constexpr int kInputs = int(sizeof...(In));
  Sources<kInputs> sources{};
  auto add = [&]<class S>(int k, std::type_identity<S>) {
    const Operand& o = in[size_t(k)];
    sources.data[k] = o.is_number ? nullptr : static_cast<const char*>(o.view.data);
    sources.dtype[k] = o.view.dtype;
    const S number = std::is_floating_point_v<S> ? S(o.real) : S(o.integer);
    memcpy(&sources.bits[k], &number, sizeof number);
  };
  int k = 0;
  (add(k++, std::type_identity<In>()), ...);
  start<strided_kernel<Formula, Out, In...>>({blocks_for_each(y.numel), kThreads}, formula,
                                             loops_of<kInputs>(walk), sources, y.as<char>(),
                                             y.dtype);
}
template <class Formula, class Out, class... In>
void strided(const Formula& formula, const std::array<Operand, sizeof...(In)>& in, MutView y) {
  strided<Formula, Out, In...>(formula, in, y, plan<int(sizeof...(In))>(in, y));
}

// True if the flat kernel did it.
template <class T, class Formula, int kInputs>
bool flat(const Formula& formula, const std::array<Operand, kInputs>& in, MutView y,
          const Walk& walk) {
  if (walk.rank != 1 || walk.step[0][0] != int64_t(sizeof(T))) return false;
  FlatSources<kInputs> sources{};
  for (int k = 0; k < kInputs; ++k) {
    const Operand& o = in[size_t(k)];
    sources.single[k] = o.is_number || (walk.step[k + 1][0] == 0 && walk.numel > 1);
    sources.number[k] = float(o.real);
    sources.data[k] = o.is_number ? nullptr : o.view.data;
    if (!sources.single[k] &&
        (walk.step[k + 1][0] != int64_t(sizeof(T)) || !aligned16(o.view.data)))
      return false;
  }
  if (!aligned16(y.data)) return false;
  const int64_t packs = walk.numel / Pack<T>::kCount + 1;
  start<flat_kernel<T, Formula, kInputs>>({blocks_for_each(packs), kThreads}, formula, sources,
                                          y.as<T>(), walk.numel);
  return true;
}

// y = formula(in...) where all have y's float dtype, or are numbers.
template <class Formula, int kInputs>
void map_floats(const Formula& formula, const std::array<Operand, kInputs>& in, MutView y) {
  if (y.numel == 0) return;
  const Walk walk = plan<kInputs>(in, y);
  auto general = [&]<class S, size_t... kIndex>(std::type_identity<S>,
                                                std::index_sequence<kIndex...>) {
    strided<Formula, S, decltype((void(kIndex), S()))...>(formula, in, y, walk);
  };
  constexpr auto kAll = std::make_index_sequence<size_t(kInputs)>();
  switch (y.dtype) {
    case DType::f32:
      if (flat<float, Formula, kInputs>(formula, in, y, walk)) return;
      break;
    case DType::f16:
      if (flat<Half, Formula, kInputs>(formula, in, y, walk)) return;
      break;
    case DType::bf16:
      if (flat<BFloat16, Formula, kInputs>(formula, in, y, walk)) return;
      break;
    case DType::f64:
      return general(std::type_identity<double>(), kAll);
    default:
      fail<DTypeError>("works on floats, got", y.dtype);
  }
  general(std::type_identity<float>(), kAll);
}

}  // namespace tg::gpu
