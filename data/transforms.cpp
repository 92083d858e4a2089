#include "tapegrad/data/transforms.h"

#include <algorithm>
#include <cmath>

#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/views.h"
#include "tapegrad/core/random.h"

namespace tg::data {
namespace {

void check_image(const char* who, const Tensor& image) {
  check<ShapeError>(image.dim() == 3, who, ": an image has shape [C,H,W], got", image.shape());
}
void check_float(const char* who, const Tensor& image) {
  check_image(who, image);
  check<DTypeError>(image.dtype() == f32, who, ": the image must be f32, got", image.dtype(),
                    "; use to_float first");
}

// The source pixels that an output pixel is made of, and their weights: a triangle around the
// centre, as wide as one pixel of whichever side is coarser.
struct Taps {
  int64_t first;
  std::vector<float> weights;
};
std::vector<Taps> taps(int64_t from, int64_t to) {
  std::vector<Taps> all;
  double scale = double(from) / double(to), reach = std::max(scale, 1.0);
  for (int64_t i = 0; i < to; ++i) {
    double centre = (double(i) + 0.5) * scale;
    auto first = std::max<int64_t>(0, int64_t(std::floor(centre - reach)));
    auto last = std::min<int64_t>(from, int64_t(std::ceil(centre + reach)));
    std::vector<double> w;
    double total = 0;
    for (int64_t k = first; k < last; ++k) {
      w.push_back(std::max(0.0, 1 - std::abs((double(k) + 0.5 - centre) / reach)));
      total += w.back();
    }
    Taps t{first, {}};
    for (double v : w) t.weights.push_back(float(v / total));
    all.push_back(std::move(t));
  }
  return all;
}

}  // namespace

Tensor to_float(const Tensor& image) {
  if (image.dtype() == f32) return image;
  check<DTypeError>(image.dtype() == u8, "to_float: the image must be u8, got", image.dtype());
  Tensor source = contiguous(image), out = empty(image.shape());
  const auto* from = source.data<uint8_t>();
  auto* to = out.mutable_data<float>();
  for (int64_t i = 0; i < out.numel(); ++i) to[i] = float(from[i]) / 255;
  return out;
}

Tensor normalize(const Tensor& image, const std::vector<double>& mean,
                 const std::vector<double>& std) {
  check_float("normalize", image);
  int64_t channels = image.size(0), pixels = image.size(1) * image.size(2);
  check<ShapeError>(int64_t(mean.size()) == channels && int64_t(std.size()) == channels,
                    "normalize: got", mean.size(), "means and", std.size(), "deviations for",
                    channels, "channels");
  Tensor source = contiguous(image), out = empty(image.shape());
  const auto* from = source.data<float>();
  auto* to = out.mutable_data<float>();
  for (int64_t c = 0; c < channels; ++c) {
    check<ValueError>(std[size_t(c)] > 0, "normalize: deviations must be above 0, got",
                      std[size_t(c)]);
    auto m = float(mean[size_t(c)]), s = float(std[size_t(c)]);
    for (int64_t i = c * pixels; i < (c + 1) * pixels; ++i) to[i] = (from[i] - m) / s;
  }
  return out;
}

Tensor random_crop(const Tensor& image, int64_t padding, Generator& random) {
  check_image("random_crop", image);
  constexpr int64_t kMostPadding = int64_t(1) << 30;
  check<ValueError>(padding >= 0 && padding <= kMostPadding, "random_crop: padding must be in [0,",
                    std::to_string(kMostPadding) + "], got", padding);
  int64_t h = image.size(1), w = image.size(2);
  int64_t down = random.integer(2 * padding + 1) - padding,
          right = random.integer(2 * padding + 1) - padding;
  Tensor out = zeros(image.shape(), image.options());
  // What of the image is seen through the window.
  int64_t rows = std::max<int64_t>(0, h - std::abs(down)),
          columns = std::max<int64_t>(0, w - std::abs(right));
  auto part = [&](const Tensor& x, int64_t y0, int64_t x0) {
    return narrow(narrow(x, 1, y0, rows), 2, x0, columns);
  };
  if (rows > 0 && columns > 0)
    copy_(part(out, std::max<int64_t>(0, -down), std::max<int64_t>(0, -right)),
          part(image, std::max<int64_t>(0, down), std::max<int64_t>(0, right)));
  return out;
}

Tensor horizontal_flip(const Tensor& image) {
  check_image("horizontal_flip", image);
  Tensor source = contiguous(image), out = empty(image.shape(), image.options());
  size_t width = size_t(image.size(2)), bytes = size_of(image.dtype());
  auto* from = static_cast<const char*>(source.read().data);
  auto* to = static_cast<char*>(out.write().data);
  for (int64_t row = 0; row < image.size(0) * image.size(1); ++row) {
    for (size_t x = 0; x < width; ++x)
      std::copy_n(from + (width - 1 - x) * bytes, bytes, to + x * bytes);
    from += width * bytes;
    to += width * bytes;
  }
  return out;
}

Tensor random_horizontal_flip(const Tensor& image, Generator& random, double p) {
  return random.bernoulli(p) ? horizontal_flip(image) : image;
}

Tensor resize(const Tensor& image, int64_t height, int64_t width) {
  check_float("resize", image);
  check<ValueError>(height > 0 && width > 0 && image.numel() > 0, "resize: from", image.shape(),
                    "to", height, "x", width);
  if (height == image.size(1) && width == image.size(2)) return image;
  int64_t channels = image.size(0), h = image.size(1), w = image.size(2);
  // Memory first: a size that there is none for is refused before anything is made of it.
  Tensor source = contiguous(image), narrow_rows = zeros({channels * h, width}),
         out = zeros({channels, height, width});
  std::vector<Taps> across = taps(w, width), down = taps(h, height);
  const auto* from = source.data<float>();
  auto* middle = narrow_rows.mutable_data<float>();
  for (int64_t r = 0; r < channels * h; ++r)
    for (int64_t x = 0; x < width; ++x) {
      const Taps& t = across[size_t(x)];
      float v = 0;
      for (size_t k = 0; k < t.weights.size(); ++k)
        v += t.weights[k] * from[r * w + t.first + int64_t(k)];
      middle[r * width + x] = v;
    }
  auto* to = out.mutable_data<float>();
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t y = 0; y < height; ++y) {
      const Taps& t = down[size_t(y)];
      float* row = to + (c * height + y) * width;
      for (size_t k = 0; k < t.weights.size(); ++k) {
        const float* above = middle + (c * h + t.first + int64_t(k)) * width;
        for (int64_t x = 0; x < width; ++x) row[x] += t.weights[k] * above[x];
      }
    }
  return out;
}

}  // namespace tg::data
