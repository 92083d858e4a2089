// Maximum pooling's gradient where the layouts of image and gradient differ.
#include <vector>

#include "catch.h"
#include "tapegrad/autograd/engine.h"
#include "tapegrad/autograd/ops.h"
#include "tapegrad/core/parallel.h"
#include "tapegrad/core/random.h"

using namespace tg;

namespace {

// dx from the definition: each dy goes to the first largest value of its window.
std::vector<float> by_definition(const std::vector<float>& x, const std::vector<float>& dy,
                                 int64_t planes, int64_t side, int64_t kernel, int64_t stride) {
  const int64_t results = (side - kernel) / stride + 1;
  std::vector<float> dx(x.size());
  for (int64_t p = 0; p < planes; ++p)
    for (int64_t oy = 0; oy < results; ++oy)
      for (int64_t ox = 0; ox < results; ++ox) {
        size_t best = size_t((p * side + oy * stride) * side + ox * stride);
        for (int64_t ky = 0; ky < kernel; ++ky)
          for (int64_t kx = 0; kx < kernel; ++kx) {
            size_t at = size_t((p * side + oy * stride + ky) * side + ox * stride + kx);
            if (x[at] > x[best]) best = at;
          }
        dx[best] += dy[size_t((p * results + oy) * results + ox)];
      }
  return dx;
}

}  // namespace

TEST_CASE("max_pool2d's gradient is right for each pair of layouts", "[pooling]") {
  manual_seed(5);
  struct Case {
    int64_t side, kernel, stride;
  };
  // Tilings, windows that overlap, gaps between windows, an edge outside of all, many positions.
  for (Case c : {Case{8, 2, 2}, {10, 5, 5}, {9, 3, 2}, {9, 2, 3}, {9, 2, 2}, {12, 6, 3}}) {
    for (bool image_last : {false, true})
      for (bool gradient_last : {false, true}) {
        INFO("side " << c.side << " kernel " << c.kernel << " stride " << c.stride
                     << " channels last: image " << image_last << " gradient " << gradient_last);
        const int64_t channels = 37, results = (c.side - c.kernel) / c.stride + 1;
        // Whole numbers: sums are exact, and some values are equal.
        Tensor x = randint(-50, 50, {2, channels, c.side, c.side}).to(f32);
        Tensor dy = randint(-50, 50, {2, channels, results, results}).to(f32);
        const std::vector<float> expected = by_definition(
            x.to_vector<float>(), dy.to_vector<float>(), 2 * channels, c.side, c.kernel, c.stride);
        if (image_last) x = channels_last(x);
        if (gradient_last) dy = channels_last(dy);
        x.requires_grad_();
        const int before = num_threads();
        for (int threads : {1, 3}) {
          set_num_threads(threads);
          Tensor y = max_pool2d(x, c.kernel, {.stride = c.stride});
          CHECK(grad(std::vector{y}, {x}, {.gradients = {dy}})[0].to_vector<float>() == expected);
        }
        set_num_threads(before);
      }
  }
}
