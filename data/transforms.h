// What is done to an image [C,H,W] on its way into a batch. All randomness comes from the
// generator.
#pragma once
#include <vector>

#include "tapegrad/core/tensor.h"

namespace tg {
class Generator;
}

namespace tg::data {

// u8 in [0, 255] -> f32 in [0, 1]; u16 pictures come as f32 already.
Tensor to_float(const Tensor& image);
// (x - mean[c]) / std[c] for each channel of an f32 image.
Tensor normalize(const Tensor& image, const std::vector<double>& mean,
                 const std::vector<double>& std);
// Surrounds the image with `padding` zeros on each side and cuts a window of the old size from a
// random place.
Tensor random_crop(const Tensor& image, int64_t padding, Generator& random);
// Left and right exchanged, with probability p.
Tensor random_horizontal_flip(const Tensor& image, Generator& random, double p = 0.5);
Tensor horizontal_flip(const Tensor& image);
// Bilinear, pixel centres aligned as in most image programs (align_corners = false); when
// shrinking, every source pixel counts (the filter widens), so nothing flickers. f32 images.
Tensor resize(const Tensor& image, int64_t height, int64_t width);

}  // namespace tg::data
