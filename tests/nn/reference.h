// References that tools/make_nn_references.py made with PyTorch, and how far a tensor is from one.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include "test_folder.h"

#include "catch.h"
#include "tapegrad/autograd/grad_mode.h"
#include "tapegrad/autograd/ops.h"
#include "tapegrad/core/io/safetensors.h"
#include "tapegrad/core/random.h"
#include "tapegrad/nn/nn.h"

namespace tg::test {

// The numbers of `pattern` in the script.
inline Tensor pattern(const Shape& shape, int64_t k, DType dtype = f64) {
  std::vector<double> values;
  for (int64_t i = 0; i < shape.numel(); ++i)
    values.push_back(double((73 * i + 101 * k) % 251 - 125) / 64);
  return tensor(values, shape, dtype);
}

// Largest |a - b| over the largest |b| (or 1); infinity if shapes differ.
inline double distance(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined() || !(a.shape() == b.shape())) return INFINITY;
  std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  double far = 0, size = 1;
  for (size_t i = 0; i < x.size(); ++i) {
    far = std::max(far, std::isnan(x[i]) ? INFINITY : std::abs(x[i] - y[i]));
    size = std::max(size, std::abs(y[i]));
  }
  return far / size;
}

class Reference {
 public:
  explicit Reference(const std::string& file) : file_(test::test_folder() + "/" + file) {}
  bool has(const std::string& name) const { return file_.find(name) != nullptr; }
  Tensor get(const std::string& name) const { return file_.read(name); }
  // Everything under "prefix/", with that taken off.
  NamedTensors below(const std::string& prefix) const {
    NamedTensors found;
    for (const auto& entry : file_.entries())
      if (entry.name.starts_with(prefix))
        found.emplace_back(entry.name.substr(prefix.size()), file_.read(entry));
    return found;
  }

 private:
  SafetensorsFile file_;
};

}  // namespace tg::test
