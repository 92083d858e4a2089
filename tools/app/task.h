// The data and the model that a config names.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tapegrad/core/function.h"
#include "tapegrad/data/dataset.h"
#include "tapegrad/nn/module.h"
#include "tapegrad/tools/app/config.h"

namespace tg::app {

using Images = data::Dataset<data::ImageAndLabel>;

struct Task {
  std::shared_ptr<const Images> train, validation, test;
  std::vector<std::string> classes;
  Shape image_shape;     // [C,H,W]
  std::string checksum;  // of the training data
};
Task load_task(const TrainConfig& config);

// A model of any type, called with a batch.
class Model {
 public:
  template <class M>
  static Model of(M model) {
    auto held = std::make_unique<M>(std::move(model));
    M* raw = held.get();
    return Model(std::move(held), [raw](const Tensor& x) { return (*raw)(x); });
  }
  nn::Module& module() { return *module_; }
  Tensor operator()(const Tensor& x) { return call_(x); }

 private:
  Model(std::unique_ptr<nn::Module> module, Function<Tensor(const Tensor&)> call)
      : module_(std::move(module)), call_(std::move(call)) {}
  std::unique_ptr<nn::Module> module_;
  Function<Tensor(const Tensor&)> call_;
};
Model make_model(const TrainConfig& config, const Shape& image_shape, int64_t classes);

// A picture file as the task's model wants it: size, channels, normalisation.
Tensor load_picture(const std::string& path, const TrainConfig& config, const Shape& image_shape);

}  // namespace tg::app
