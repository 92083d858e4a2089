// Convolution, batch normalisation and pooling on device cuda where the operator table's samples
// are too small: several tiles, parts and slices.
#include "cuda/pattern.h"
#include "tapegrad/autograd/engine.h"

using namespace tg;
using namespace tg::test;

namespace {

constexpr DType kFloats[] = {f32, f64, f16, bf16};

struct Case {
  Shape x, weight;
  Conv2dOptions options;
};

}  // namespace

TEST_CASE("cuda: convolutions of several tiles", "[cuda]") {
  const Case cases[] = {
      {{2, 5, 13, 11}, {70, 5, 3, 3}, {.padding = 1}},
      {{1, 70, 9, 8}, {66, 70, 1, 2}, {.stride = {2, 1}}},
      {{3, 12, 10, 9}, {15, 4, 3, 2}, {.stride = 2, .padding = {1, 0}, .groups = 3}},
      {{2, 6, 12, 10}, {6, 1, 3, 3}, {.padding = 2, .dilation = 2, .groups = 6}},
      // Channels in pieces of 16 bytes, as the tensor cores want them; tiles and groups of them.
      {{2, 16, 13, 11}, {136, 16, 3, 3}, {.padding = 1}},
      {{3, 40, 9, 8}, {24, 40, 3, 2}, {.stride = {2, 3}, .padding = 2, .dilation = {1, 2}}},
      {{2, 48, 7, 6}, {15, 16, 2, 3}, {.padding = {1, 0}, .groups = 3}},
      // Pixels in more than one part, and a part of which the end is not full.
      {{2, 3, 29, 21}, {6, 3, 3, 3}, {.padding = 1}},
  };
  in_every_order([&] {
    for (DType t : kFloats)
      for (const Case& c : cases) {
        INFO(to_text(c.x) << " " << to_text(c.weight));
        const auto formula = [&](const std::vector<Tensor>& x) {
          return conv2d(x[0], x[1], x[2], c.options);
        };
        const Tensor x = pattern(c.x, 1, t), w = pattern(c.weight, 2, t);
        check_against_cpu(formula, {x, w, pattern({c.weight[0]}, 3, t)}, 8);
        check_against_cpu(formula, {channels_last(x), w, pattern({c.weight[0]}, 3, t)}, 8);
      }
  });
}

TEST_CASE("cuda: a sum over many pixels keeps its digits", "[cuda]") {
  // 9216 pixels of about 1000: a single chain of f32 would lose 4 digits of the rest.
  const Tensor x = pattern({1, 1, 96, 96}, 1, f32) + 1000;
  check_against_cpu([](const std::vector<Tensor>& in) { return conv2d(in[0], in[1]); },
                    {x, pattern({1, 1, 1, 1}, 2, f32)}, 8);
}

TEST_CASE("cuda: batch normalisation over several slices", "[cuda]") {
  // Planes and channel rows, channels that fill no warp, more values than a slice has.
  const Shape shapes[] = {{3, 5, 7, 6}, {2, 40, 3, 3}, {9, 33}, {2, 3, 70, 65}};
  in_every_order([&] {
    for (DType t : kFloats)
      for (const Shape& shape : shapes)
        for (bool last : {false, true}) {
          if (last && shape.rank() != 4) continue;
          INFO(to_text(shape) << " channels last " << last);
          const int64_t c = shape[1];
          // Far from zero, where f16 has a few digits left.
          Tensor x = pattern(shape, 1, t) + Scalar(t == f16 || t == bf16 ? 3 : 100);
          if (last) x = channels_last(x);
          const std::vector<Tensor> in = {x, pattern({c}, 2, t), pattern({c}, 3, t)};
          check_against_cpu(
              [](const std::vector<Tensor>& v) {
                return batch_norm(v[0], {}, {}, v[1], v[2], {.training = true});
              },
              in, t == f32 || t == f64 ? 400 : 16);
          check_against_cpu(
              [&](const std::vector<Tensor>& v) {
                const Tensor mean = full({c}, 2.5, v[0].options()),
                             variance = full({c}, 1.5, v[0].options());
                return batch_norm(v[0], mean, variance, v[1], v[2]);
              },
              in, 16);
        }
    Tensor mean = zeros({40}, kGpu), variance = ones({40}, kGpu);
    const Tensor x = pattern({30, 40}, 1, f32);
    batch_norm(x.to(kGpu), mean, variance, {}, {}, {.training = true, .momentum = 0.25});
    const Tensor m = tg::mean(x.to(f64), 0), d = x.to(f64) - m;
    CHECK(difference(mean.to(kCpuDevice), m * 0.25, f32, 8) == "");
    CHECK(difference(variance.to(kCpuDevice), sum(d * d, 0) / 29 * 0.25 + 0.75, f32, 8) == "");
  });
}

TEST_CASE("cuda: pooling, and the second derivative of its maximum", "[cuda]") {
  in_every_order([] {
    for (DType t : kFloats)
      for (bool last : {false, true}) {
        Tensor x = pattern({3, 6, 17, 14}, 1, t);
        if (last) x = channels_last(x);
        const Pool2dOptions options{.stride = 2, .padding = 1};
        check_against_cpu([&](const auto& v) { return max_pool2d(v[0], 3, options); }, {x}, 4);
        check_against_cpu([&](const auto& v) { return avg_pool2d(v[0], 3, options); }, {x}, 4);
        check_against_cpu([](const auto& v) { return adaptive_avg_pool2d(v[0], {5, 3}); }, {x}, 4);
        check_against_cpu(
            [&](const auto& v) {
              Tensor y = max_pool2d(v[0], 3, options);
              return grad(sum(y * y * y), v[0], {.create_graph = true});
            },
            {x}, 16);
      }
  });
}
