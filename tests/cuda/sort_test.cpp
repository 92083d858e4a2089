// Sorting and adding on device cuda where the operator table's samples are too small: lines of
// several runs, and memory that a view shows in odd ways.
#include <cmath>

#include "cuda/pattern.h"
#include "tapegrad/kernels/accumulate.h"

using namespace tg;
using namespace tg::test;

namespace {

// Many equal values, both zeros, and, of floats, NaN and infinities among them.
Tensor with_ties(int64_t rows, int64_t n, DType dtype) {
  Tensor x = floor(pattern({rows, n}, 1, f64) * 40) / 8;
  if (dtype == boolean) return gt(x, 0);
  if (!is_floating(dtype)) return cast(dtype == u8 ? abs(x) : x, dtype);
  x = cast(x, dtype);
  fill_(slice(x, 1, 0, n, 37), Scalar(std::nan("")));
  fill_(slice(x, 1, 3, n, 41), Scalar(-0.0));
  fill_(slice(x, 1, 5, n, 43), Scalar(INFINITY));
  fill_(slice(x, 1, 7, n, 47), Scalar(-INFINITY));
  return x;
}

void check_same(const std::pair<Tensor, Tensor>& there, const std::pair<Tensor, Tensor>& here) {
  CHECK(there.second.to_vector<int64_t>() == here.second.to_vector<int64_t>());
  CHECK(same_bits(there.first.to(kCpuDevice), here.first));
}

}  // namespace

TEST_CASE("cuda: lines of any length are sorted as on the CPU", "[cuda]") {
  in_every_order([] {
    for (DType t : {f32, f64, f16, bf16, i8, u8, i16, i32, i64, boolean})
      for (int64_t n : {1, 2, 31, 1000, 1024, 1025, 2500}) {
        if (n > 1025 && t != f32 && t != f64) continue;
        INFO(name_of(t) << " lines of " << n);
        const Tensor x = with_ties(2, n, t), y = x.to(kGpu);
        for (bool falling : {false, true}) {
          check_same(sort(y, 1, falling), sort(x, 1, falling));
          for (int64_t k : {int64_t(1), n / 2, n})
            check_same(topk(y, k, 1, falling), topk(x, k, 1, falling));
        }
        check_same(sort(transpose(y, 0, 1), 0), sort(transpose(x, 0, 1), 0));
      }
  });
}

TEST_CASE("cuda: what a view shows several times is added up as often", "[cuda]") {
  // Shape and strides of views of 60 elements.
  const std::pair<Shape, Shape> views[] = {
      {{58, 3}, {1, 1}},
      {{3, 58}, {1, 1}},
      {{4, 3, 5}, {0, 7, 2}},
      {{2, 9, 4}, {30, 2, 3}},
      {{5, 5}, {10, 4}},
      {{4, 15}, {15, 1}},
      {{6}, {0}},
      {{}, {}},
      {{2, 2, 2, 2, 2, 2}, {16, 8, 4, 3, 2, 1}},
      {{3, 1, 6, 2}, {20, 0, 3, 1}},
  };
  in_every_order([&] {
    for (DType t : {f64, f32, bf16, i8, i64, boolean})
      for (const auto& [shape, strides] : views) {
        INFO(name_of(t) << " " << to_text(shape) << " " << to_text(strides));
        const Tensor x = t == boolean ? gt(pattern(shape, 3, f64), 1) : pattern(shape, 3, t);
        Tensor here = t == boolean ? gt(pattern({60}, 8, f64), 1) : pattern({60}, 8, t);
        Tensor there = here.to(kGpu);
        Tensor exact = clone(here.to(f64));
        kernels::accumulate(Cpu{}, x.to(f64).read(), as_strided(exact, shape, strides, 0).write());
        kernels::accumulate(Cpu{}, x.read(), as_strided(here, shape, strides, 0).write());
        kernels::accumulate(Cuda{}, x.to(kGpu).read(),
                            as_strided(there, shape, strides, 0).write());
        if (is_floating(t))
          CHECK(difference(there.to(kCpuDevice), exact, t, 4) == "");
        else
          CHECK(same_bits(there.to(kCpuDevice), here));
      }
  });
}
