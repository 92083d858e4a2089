#include "ops/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/core/io/safetensors.h"
#include "test_folder.h"

namespace tg::test {
namespace {

double epsilon(DType t) {
  return t == f64 ? 0x1p-52 : t == f16 ? 0x1p-10 : t == bf16 ? 0x1p-7 : 0x1p-23;
}
double largest_finite(DType t) {
  return t == f16    ? 65504
         : t == bf16 ? 3.3895313892515355e38
         : t == f32  ? 3.4028234663852886e38
                     : 1.7976931348623157e308;
}

}  // namespace

std::string difference(const Tensor& y, const Tensor& r, DType dtype, double ulps) {
  if (!(y.shape() == r.shape()))
    return "shape " + to_text(y.shape()) + ", expected " + to_text(r.shape());
  if (!y.is_floating()) {
    std::vector<int64_t> a = y.to_vector<int64_t>(), b = cast(r, y.dtype()).to_vector<int64_t>();
    for (size_t i = 0; i < a.size(); ++i)
      if (a[i] != b[i])
        return "element " + to_text(i) + " is " + to_text(a[i]) + ", expected " + to_text(b[i]);
    return "";
  }
  std::vector<double> a = y.to_vector<double>(), b = r.to_vector<double>();
  double scale = 0;
  for (double v : b)
    if (std::isfinite(v)) scale = std::max(scale, std::abs(v));
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(b[i]) ? std::isnan(a[i]) : a[i] == b[i]) continue;
    if (std::isinf(a[i]) && a[i] * b[i] > 0 && std::abs(b[i]) > largest_finite(y.dtype())) continue;
    double allowed = ulps * epsilon(dtype) * (std::abs(b[i]) + scale);
    if (!(std::abs(a[i] - b[i]) <= allowed) || !std::isfinite(b[i]))
      return "element " + to_text(i) + " is " + to_text(a[i]) + ", expected " + to_text(b[i]) +
             " within " + to_text(allowed);
  }
  return "";
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape()) || a.dtype() != b.dtype()) return false;
  Tensor p = a.detach().contiguous(), q = b.detach().contiguous();
  return std::memcmp(p.read().data, q.read().data, size_t(p.numel()) * size_of(p.dtype())) == 0;
}

Tensor reference(const std::string& family, const std::string& key) {
  static std::map<std::string, std::map<std::string, Tensor>> loaded;
  auto found = loaded.find(family);
  if (found == loaded.end()) {
    std::map<std::string, Tensor> tensors;
    for (auto& [name, t] :
         load_safetensors(test_folder() + "/ops/references/" + family + ".safetensors"))
      tensors[name] = t;
    found = loaded.emplace(family, std::move(tensors)).first;
  }
  auto it = found->second.find(key);
  return it == found->second.end() ? Tensor() : it->second;
}

}  // namespace tg::test
