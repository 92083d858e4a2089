#include "tapegrad/data/mnist.h"

#include "tapegrad/autograd/ops/views.h"
#include "tapegrad/data/transforms.h"

namespace tg::data {

Mnist::Mnist(const std::string& folder, bool train, Options options)
    : Mnist(read_mnist(folder, train), options) {}

Mnist::Mnist(ImagesAndLabels data, Options options) : data_(std::move(data)), options_(options) {
  check<ShapeError>(data_.images.dim() == 3 && data_.labels.dim() == 1 &&
                        data_.images.size(0) == data_.labels.size(0),
                    "Mnist: images [n,rows,columns] and labels [n] expected, got",
                    data_.images.shape(), data_.labels.shape());
  count_as_data(data_.images);
  count_as_data(data_.labels);
}

ImageAndLabel Mnist::get(int64_t index, Generator& random) const {
  Tensor image = to_float(unsqueeze(select(data_.images, 0, index), 0));
  if (options_.augment) image = random_horizontal_flip(random_crop(image, 2, random), random);
  return {normalize(image, {options_.mean}, {options_.std}), select(data_.labels, 0, index)};
}

}  // namespace tg::data
