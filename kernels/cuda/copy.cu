// Moving elements: copies between any two layouts and dtypes, and filling with one value.
//
// Elements of one size are moved as bits. Another dtype is reached by way of the widest type of its
// kind (double for floats, int64_t for integers and bool), which loses nothing, and rounded once;
// between f32, f16 and bf16 that lie in the same order, 16 bytes of the wider one at a time.
#include "tapegrad/kernels/copy.h"

#include "tapegrad/kernels/cuda/convert_any.cuh"
#include "tapegrad/kernels/cuda/elementwise.cuh"

namespace tg::kernels {
namespace {

using gpu::Operand;

struct Same {
  template <class T>
  __device__ T operator()(T x) const {
    return x;
  }
};

template <class From, class To, template <class> class Convert>
__global__ void convert_kernel(gpu::Strided<1> loops, const char* x, DType x_dtype, char* y) {
  for (int64_t i = gpu::first_index(); i < loops.numel; i += gpu::index_step()) {
    int64_t offset[2];
    gpu::find_places(loops, i, offset);
    *reinterpret_cast<To*>(y + offset[0]) = Convert<To>()(From::load(x_dtype, x + offset[1]));
  }
}

// Same order, no gaps: each thread turns as many elements as fill 16 bytes of the wider type.
template <class From, class To>
__global__ void convert_flat_kernel(const From* x, To* y, int64_t numel) {
  constexpr int kCount = 16 / (sizeof(From) > sizeof(To) ? sizeof(From) : sizeof(To));
  struct alignas(kCount * sizeof(From)) Source {
    From v[kCount];
  };
  struct alignas(kCount * sizeof(To)) Target {
    To v[kCount];
  };
  const int64_t packs = numel / kCount;
  for (int64_t p = gpu::first_index(); p < packs; p += gpu::index_step()) {
    const Source in = gpu::load<Source>(x + p * kCount);
    Target out;
#pragma unroll
    for (int e = 0; e < kCount; ++e) out.v[e] = gpu::narrow<To>(gpu::widen(in.v[e]));
    gpu::store(y + p * kCount, out);
  }
  const int64_t i = packs * kCount + gpu::first_index();
  if (i < numel) y[i] = gpu::narrow<To>(gpu::widen(x[i]));
}

template <class F>
void visit_short(DType t, F&& fn) {
  if (t == DType::f16) return fn.template operator()<Half>();
  if (t == DType::bf16) return fn.template operator()<BFloat16>();
  if (t == DType::f32) fn.template operator()<float>();
}

bool convert_flat(const Walk& walk, View x, MutView y) {
  const auto bytes = [](DType t) { return int64_t(size_of(t)); };
  if (walk.rank != 1 || walk.step[0][0] != bytes(y.dtype) || walk.step[1][0] != bytes(x.dtype) ||
      !gpu::aligned16(x.data) || !gpu::aligned16(y.data))
    return false;
  bool done = false;
  visit_short(x.dtype, [&]<class From>() {
    visit_short(y.dtype, [&]<class To>() {
      if constexpr (!std::is_same_v<From, To>) {
        gpu::start<convert_flat_kernel<From, To>>(
            {gpu::blocks_for_each(y.numel / 4 + 1), gpu::kThreads}, x.as<From>(), y.as<To>(),
            y.numel);
        done = true;
      }
    });
  });
  return done;
}

void convert(View x, MutView y) {
  const Walk walk = gpu::plan<1>({Operand(x)}, y);
  if (convert_flat(walk, x, y)) return;
  const gpu::Strided<1> loops = gpu::loops_of<1>(walk);
  const gpu::Config config{gpu::blocks_for_each(y.numel), gpu::kThreads};
  visit_all(y.dtype, [&]<class To>() {
    if (is_floating(x.dtype))
      gpu::start<convert_kernel<gpu::Reals, To, gpu::FromReal>>(config, loops, x.as<char>(),
                                                                x.dtype, y.as<char>());
    else
      gpu::start<convert_kernel<gpu::Integers, To, gpu::FromInteger>>(config, loops, x.as<char>(),
                                                                      x.dtype, y.as<char>());
  });
}

template <class Bits>
__global__ void fill_kernel(gpu::Strided<0> loops, char* y, Bits value) {
  for (int64_t i = gpu::first_index(); i < loops.numel; i += gpu::index_step()) {
    int64_t offset[1];
    gpu::find_places(loops, i, offset);
    *reinterpret_cast<Bits*>(y + offset[0]) = value;
  }
}

}  // namespace

void copy(Cuda, View x, MutView y) {
  if (y.numel == 0) return;
  if (x.dtype != y.dtype) return convert(x, y);
  visit_bytes(y.dtype, [&]<class Bits>() { gpu::strided<Same, Bits, Bits>({}, {x}, y); });
}

void fill(Cuda, MutView y, Scalar value) {
  if (y.numel == 0) return;
  const uint64_t bits = bits_of(value, y.dtype);
  visit_bytes(y.dtype, [&]<class Bits>() {
    gpu::start<fill_kernel<Bits>>({gpu::blocks_for_each(y.numel), gpu::kThreads},
                                  gpu::loops_of<0>(gpu::plan<0>({}, y)), y.as<char>(), Bits(bits));
  });
}

}  // namespace tg::kernels
