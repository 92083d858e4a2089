// Kernels on device cuda whose results are the CPU's to the last bit.
#include <cstring>

#include "cuda/pattern.h"
#include "ops/walk_rows.h"
#include "tapegrad/kernels/copy.h"
#include "tapegrad/kernels/random.h"

using namespace tg;
using namespace tg::test;

namespace {

// The same bits in every element; a NaN is a NaN, whatever its payload.
bool equal_bits(const Tensor& a, const Tensor& b) {
  Tensor p = a.to(kCpuDevice).contiguous(), q = b.to(kCpuDevice).contiguous();
  if (p.dtype() != q.dtype() || !(p.shape() == q.shape())) return false;
  const size_t bytes = size_of(p.dtype());
  std::vector<double> v(size_t(p.numel())), w(size_t(p.numel()));
  if (p.is_floating()) {
    v = p.to_vector<double>();
    w = q.to_vector<double>();
  }
  for (size_t i = 0; i < v.size(); ++i) {
    if (v[i] != v[i] && w[i] != w[i]) continue;
    if (std::memcmp(static_cast<const char*>(p.read().data) + i * bytes,
                    static_cast<const char*>(q.read().data) + i * bytes, bytes) != 0)
      return false;
  }
  return true;
}

constexpr DType kAll[] = {f32, f64, f16, bf16, i8, u8, i16, i32, i64, boolean};

// Values at the edges of every dtype.
Tensor edges() {
  constexpr double inf = std::numeric_limits<double>::infinity();
  return tensor(
      {0,       1,       -1,         2.5,    -2.5,        127.5,       -129,
       255.9,   65504,   65520,      -70000, 2147483648., -3e9,        1e19,
       -1e19,   1e39,    inf,        -inf,   -inf + inf,  1 + 0x1p-11, 1 + 0x1p-11 + 0x1p-30,
       0x1p-24, 0x1p-26, 1 + 0x1p-8, 3,      -0.75,       1e-40,       0x1p-149,
       7,       300,     40000,      -1e5},
      f64);
}

}  // namespace

TEST_CASE("cuda: every dtype converts to every other as on the CPU", "[cuda]") {
  in_every_order([] {
    for (DType from : kAll)
      for (DType to : kAll) {
        INFO(name_of(from) << " to " << name_of(to));
        Tensor x = reshape(cast(edges(), from), {4, 8}), expected = cast(x, to);
        Tensor on_gpu = x.to(kGpu);
        CHECK(equal_bits(cast(on_gpu, to), expected));
        CHECK(equal_bits(cast(reversed(on_gpu), to), expected));
        CHECK(equal_bits(cast(strided(on_gpu), to), expected));
      }
  });
}

TEST_CASE("cuda: copies between layouts, with broadcasting, of any length", "[cuda]") {
  in_every_order([] {
    for (int64_t n : {1, 3, 4, 5, 127, 1000, 4099}) {
      Tensor x = reshape(arange(Scalar(0), Scalar(3 * n), Scalar(1), f32), {3, n});
      Tensor y = x.to(kGpu);
      CHECK(equal_bits(y, x));
      CHECK(equal_bits(transpose(y, 0, 1).contiguous(), transpose(x, 0, 1)));
      CHECK(equal_bits(strided(y).contiguous(), x));
      CHECK(equal_bits(expand(slice(y, 0, 1, 2), {4, n}).contiguous(),
                       expand(slice(x, 0, 1, 2), {4, n})));
      CHECK(equal_bits(cast(slice(y, 1, 1, n), bf16), cast(slice(x, 1, 1, n), bf16)));
    }
    CHECK(empty({0, 5}, kGpu).contiguous().numel() == 0);
  });
}

TEST_CASE("cuda: filling", "[cuda]") {
  in_every_order([] {
    for (DType t : kAll)
      for (Scalar value : {Scalar(3), Scalar(-1.5), Scalar(true)}) {
        if (t == u8 && value.to_double() < 0) continue;
        Tensor here = empty({3, 7}, t), there = empty({3, 7}, {t, kGpu});
        fill_(here, value);
        fill_(there, value);
        CHECK(equal_bits(there, here));
        Tensor row = slice(there, 1, 2, 7, 3);
        fill_(row, Scalar(0));
        fill_(slice(here, 1, 2, 7, 3), Scalar(0));
        CHECK(equal_bits(there, here));
      }
  });
}

TEST_CASE("cuda: random numbers have the CPU's bits", "[cuda]") {
  const RandomState state{42, 7, 3};
  in_every_order([&] {
    for (DType t : {f32, f64, f16, bf16})
      for (int64_t n : {1, 2, 3, 5, 1000, 4099}) {
        INFO(name_of(t) << " " << n);
        Tensor here = empty({n}, t), there = empty({n}, {t, kGpu});
        kernels::uniform(Cpu{}, here.write(), -2, 3, state);
        kernels::uniform(Cuda{}, there.write(), -2, 3, state);
        CHECK(equal_bits(there, here));
        kernels::normal(Cpu{}, here.write(), 0.5, 2, state);
        kernels::normal(Cuda{}, there.write(), 0.5, 2, state);
        CHECK(equal_bits(there, here));
        Tensor chance = clamp(abs(here), 0, 1);
        kernels::bernoulli(Cpu{}, chance.read(), here.write(), state);
        kernels::bernoulli(Cuda{}, chance.to(kGpu).read(), there.write(), state);
        CHECK(equal_bits(there, here));
      }
    for (DType t : {f32, f16, i8, u8, i16, i32, i64})
      for (uint64_t range : {uint64_t(1), uint64_t(10), uint64_t(0)}) {
        Tensor here = empty({1001}, t), there = empty({1001}, {t, kGpu});
        kernels::randint(Cpu{}, here.write(), -3, range, state);
        kernels::randint(Cuda{}, there.write(), -3, range, state);
        CHECK(equal_bits(there, here));
      }
  });
}

TEST_CASE("cuda: a probability outside of [0,1] raises", "[cuda]") {
  for (double bad : {-0.1, 1.1, std::nan("")}) {
    Tensor p = tensor({0.5, bad}, f32).to(kGpu), y = empty({2}, kGpu);
    CHECK_THROWS_AS(kernels::bernoulli(Cuda{}, p.read(), y.write(), {}), ValueError);
  }
}

TEST_CASE("cuda: products of 16-bit matrices on tensor cores, every layout", "[cuda]") {
  // Rows and columns that fill no tile of 128, depths that fill no step of 32; rows of 16 bytes, as
  // the tensor cores want them, and others, which the tiled kernel takes.
  const int64_t sizes[][3] = {{8, 8, 8}, {136, 152, 72}, {130, 264, 40}, {16, 8, 0}, {33, 20, 7}};
  in_every_order([&] {
    for (DType t : {f16, bf16})
      for (auto [m, n, k] : sizes)
        for (int transposed = 0; transposed < 4; ++transposed) {
          INFO(name_of(t) << " " << m << "x" << n << "x" << k << " " << transposed);
          Tensor a =
              transposed & 1 ? transpose(pattern({k, m}, 1, t), 0, 1) : pattern({m, k}, 1, t);
          Tensor b =
              transposed & 2 ? transpose(pattern({n, k}, 9, t), 0, 1) : pattern({k, n}, 9, t);
          Tensor expected = matmul(cast(a, f64), cast(b, f64));
          Tensor y = matmul(a.to(kGpu), b.to(kGpu)).to(kCpuDevice);
          CHECK(difference(y, expected, t, 1) == "");
        }
    for (DType t : {f16, bf16}) {
      Tensor x = pattern({3, 40, 64}, 1, t), w = pattern({24, 64}, 5, t),
             bias = pattern({24}, 3, t);
      Tensor expected = matmul(cast(x, f64), transpose(cast(w, f64), 0, 1)) + cast(bias, f64);
      CHECK(difference(linear(x.to(kGpu), w.to(kGpu), bias.to(kGpu)).to(kCpuDevice), expected, t,
                       1) == "");
      Tensor v = pattern({3, 64, 16}, 7, t);
      CHECK(difference(matmul(x.to(kGpu), v.to(kGpu)).to(kCpuDevice),
                       matmul(cast(x, f64), cast(v, f64)), t, 1) == "");
    }
  });
}
