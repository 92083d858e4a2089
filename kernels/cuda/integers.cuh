// Formulas on integers: arithmetic wraps around, as on the CPU.
#pragma once
#include "tapegrad/kernels/cuda/device.cuh"
#include "tapegrad/kernels/dispatch.h"
#include "tapegrad/kernels/integer_lane.h"

namespace tg::gpu {

// i64 in itself, the narrower ones and bool in int32_t.
template <class F>
void compute_integer(DType t, F&& fn) {
  if (t == DType::i64) return fn.template operator()<int64_t>();
  fn.template operator()<int32_t>();
}

// A formula in the words of the functors, on plain integers.
template <class Formula>
struct OfLanes {
  Formula formula;
  template <class... S>
  __device__ auto operator()(S... x) const {
    return formula(kernels::IntegerLane<S>(x)...).v;
  }
};

// A question about doubles, asked of an integer: a double keeps its sign and whether it is zero.
template <class Question>
struct OfInteger {
  Question question;
  template <class S>
  __device__ bool operator()(S x) const {
    return question(double(x));
  }
};

}  // namespace tg::gpu
