#include "tapegrad/tools/app/task.h"

#include <algorithm>
#include <numeric>

#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/core/random.h"
#include "tapegrad/data/image_folder.h"
#include "tapegrad/data/mnist.h"
#include "tapegrad/data/spirals.h"
#include "tapegrad/nn/models/cnn.h"
#include "tapegrad/nn/models/mlp.h"
#include "tapegrad/nn/models/resnet.h"
#include "tapegrad/tools/app/sha256.h"

namespace tg::app {
namespace {

// Pixels of photographs, as used for ImageNet.
data::ImageFolderOptions picture_options(const TrainConfig& c, bool augment) {
  data::ImageFolderOptions o;
  o.image_size = c.data.image_size;
  o.mean = {0.485, 0.456, 0.406};
  o.std = {0.229, 0.224, 0.225};
  o.augment = augment;
  return o;
}

// The first `count` of a fixed shuffle for training, the last `validation` for validation: the same
// for every seed, so that runs can be compared.
struct Split {
  std::vector<int64_t> train, validation;
};
Split split(int64_t size, const TrainConfig& c) {
  int64_t held = c.data.validation;
  check<ValueError>(held < size, "data.validation:", held, "of", size,
                    "training images are held back, which leaves none to train on");
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), int64_t(0));
  Generator random(20231);
  for (int64_t i = size - 1; i > 0; --i)
    std::swap(order[size_t(i)], order[size_t(random.integer(i + 1))]);
  Split s;
  s.validation.assign(order.end() - held, order.end());
  order.resize(size_t(size - held));
  if (c.data.train_samples > 0) {
    check<ValueError>(c.data.train_samples <= int64_t(order.size()),
                      "data.train_samples:", c.data.train_samples,
                      "were asked for, but there are only", order.size());
    order.resize(size_t(c.data.train_samples));
  }
  s.train = std::move(order);
  return s;
}

void set_split(Task& task, std::shared_ptr<const Images> train, std::shared_ptr<const Images> plain,
               const TrainConfig& c) {
  Split s = split(train->size(), c);
  task.train =
      std::make_shared<data::Subset<data::ImageAndLabel>>(std::move(train), std::move(s.train));
  task.validation = std::make_shared<data::Subset<data::ImageAndLabel>>(std::move(plain),
                                                                        std::move(s.validation));
}

// Finds before the training what would otherwise end it in the middle.
void check_images(const data::ImagesAndLabels& images, const std::string& which,
                  const Shape& like) {
  Shape shape = images.images.shape();
  check<FileError>(shape.numel() > 0, which, "hold no pixels: their shape is", shape);
  check<FileError>(shape[1] == like[1] && shape[2] == like[2], which, "have", shape[1], "x",
                   shape[2], "pixels, but the training images", like[1], "x", like[2]);
  auto classes = int64_t(data::fashion_mnist_classes().size());
  const auto* label = images.labels.data<int64_t>();
  for (int64_t i = 0; i < images.labels.numel(); ++i)
    check<FileError>(label[i] >= 0 && label[i] < classes, which, "have the label", label[i],
                     "for image", i, "; labels are 0 to", classes - 1);
}

Task fashion_mnist(const TrainConfig& c) {
  std::string folder = c.data.folder.empty() ? data::kFashionMnistFolder : c.data.folder;
  data::ImagesAndLabels images = data::read_mnist(folder, true);
  data::ImagesAndLabels test = data::read_mnist(folder, false);
  check_images(images, folder + ": the training images", images.images.shape());
  check_images(test, folder + ": the test images", images.images.shape());
  data::MnistOptions augmented;
  augmented.augment = c.data.augment;
  Task task;
  Sha256 hash;
  hash.add(images.images.read().data, size_t(images.images.numel()));
  hash.add(images.labels.read().data, size_t(images.labels.numel()) * 8);
  task.checksum = hash.hex();
  task.image_shape = {1, images.images.size(1), images.images.size(2)};
  set_split(task, std::make_shared<data::Mnist>(images, augmented),
            std::make_shared<data::Mnist>(images), c);
  task.test = std::make_shared<data::Mnist>(std::move(test));
  task.classes = data::fashion_mnist_classes();
  return task;
}

// Checkpoints hold the names of the classes, as lines of UTF-8.
void check_class_name(const std::string& folder, const std::string& name) {
  check<FileError>(
      name.find('\n') == std::string::npos && is_utf8(name),
      folder + ": the folder '" + name + "' names a class, but is not one line of UTF-8");
}

Task image_folder(const TrainConfig& c) {
  check<ValueError>(!c.data.folder.empty(),
                    "data.folder must name a folder with train/ and test/ in it");
  auto train = std::make_shared<data::ImageFolder>(c.data.folder + "/train",
                                                   picture_options(c, c.data.augment));
  auto plain =
      std::make_shared<data::ImageFolder>(c.data.folder + "/train", picture_options(c, false));
  auto test =
      std::make_shared<data::ImageFolder>(c.data.folder + "/test", picture_options(c, false));
  for (const std::string& name : train->classes()) check_class_name(c.data.folder, name);
  check<FileError>(test->classes() == train->classes(), c.data.folder,
                   ": train and test have different classes");
  Task task;
  Sha256 hash;  // of names only: hashing all pictures would take longer than reading them once
  for (int64_t i = 0; i < train->size(); ++i) {
    std::string name = train->name(i).substr(c.data.folder.size());  // the folder may move
    hash.add(name.data(), name.size() + 1);
  }
  task.checksum = hash.hex();
  task.classes = train->classes();
  task.image_shape = {3, c.data.image_size, c.data.image_size};
  set_split(task, train, plain, c);
  task.test = test;
  return task;
}

Task spirals(const TrainConfig& c) {
  int64_t count = (c.data.train_samples > 0 ? c.data.train_samples : 2000) + c.data.validation;
  auto train = std::make_shared<data::TensorDataset>(data::spirals(count, 0.02, 1));
  Task task;
  set_split(task, train, train, c);
  task.test = std::make_shared<data::TensorDataset>(data::spirals(1000, 0.02, 2));
  task.classes = {"first spiral", "second spiral"};
  task.image_shape = {2};
  task.checksum = "synthetic";
  return task;
}

std::vector<int64_t> hidden_sizes(const std::string& text) {
  std::vector<int64_t> sizes;
  for (size_t at = 0; at <= text.size() && !text.empty();) {
    size_t comma = std::min(text.find(',', at), text.size());
    std::string part = text.substr(at, comma - at);
    bool ok = !part.empty() && part.size() < 8 &&
              part.find_first_not_of("0123456789") == std::string::npos;
    check<ValueError>(ok && std::stoll(part) > 0,
                      "model.hidden must be sizes such as 256,128, not '" + text + "'");
    sizes.push_back(std::stoll(part));
    at = comma + 1;
  }
  return sizes;
}

}  // namespace

Task load_task(const TrainConfig& c) {
  if (c.data.name == "fashion_mnist") return fashion_mnist(c);
  if (c.data.name == "image_folder") return image_folder(c);
  return spirals(c);
}

Model make_model(const TrainConfig& c, const Shape& image_shape, int64_t classes) {
  if (c.model.name == "mlp") {
    std::vector<int64_t> sizes = hidden_sizes(c.model.hidden);
    sizes.insert(sizes.begin(), image_shape.numel());
    sizes.push_back(classes);
    nn::MLPOptions options;
    options.dropout = c.model.dropout ? 0.2 : 0;
    return Model::of(nn::MLP(sizes, options));
  }
  check<ValueError>(image_shape.rank() == 3, "model.name:", c.model.name,
                    "needs images; use mlp for points");
  if (c.model.name == "cnn") {
    check<ShapeError>(image_shape[1] == image_shape[2], "model.name: cnn needs square images, got",
                      image_shape);
    nn::CNNOptions options;
    options.in_channels = image_shape[0];
    options.image_size = image_shape[1];
    options.classes = classes;
    options.dropout = c.model.dropout;
    return Model::of(nn::CNN(options));
  }
  nn::ResNet18Options options;
  options.in_channels = image_shape[0];
  options.classes = classes;
  return Model::of(nn::ResNet18(options));
}

Tensor load_picture(const std::string& path, const TrainConfig& c, const Shape& image_shape) {
  check<ValueError>(image_shape.rank() == 3, "this model works on points, not on pictures");
  data::ImageFolderOptions options = picture_options(c, false);
  options.image_size = image_shape[1];
  options.channels = int(image_shape[0]);
  if (image_shape[0] == 1) {
    options.mean = {data::MnistOptions{}.mean};
    options.std = {data::MnistOptions{}.std};
  }
  return data::load_picture(path, options);
}

}  // namespace tg::app
