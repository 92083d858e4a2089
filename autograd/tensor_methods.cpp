// The members of Tensor that are operators. Those of the tape (requires_grad, backward, ...) stand
// beside the engine.
#include <cmath>
#include <cstring>

#include "tapegrad/autograd/ops/arithmetic.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/indexing.h"
#include "tapegrad/autograd/ops/unary.h"
#include "tapegrad/autograd/ops/views.h"
#include "tapegrad/core/scope.h"
#include "tapegrad/core/tensor.h"
#include "tapegrad/kernels/copy.h"
#include "tapegrad/kernels/dispatch.h"

namespace tg {
namespace {

const void* only_element(const Tensor& x) {
  check(x.defined(), "item() of an undefined tensor");
  check<ShapeError>(x.numel() == 1, "item() needs exactly one element, got shape", x.shape());
  check<DeviceError>(x.device().is_cpu(), "item(): the tensor is on", x.device(),
                     "; copy it with to(kCpuDevice)");
  return x.read().data;
}

}  // namespace

double Tensor::item() const {
  const void* p = only_element(*this);
  double value = 0;
  visit_all(dtype(), [&]<class T>() {
    T v = *static_cast<const T*>(p);
    if constexpr (std::is_arithmetic_v<T>)
      value = double(v);
    else
      value = double(float(v));
  });
  return value;
}

int64_t Tensor::item_int64() const {
  const void* p = only_element(*this);
  if (is_floating()) {
    double v = item();
    check<ValueError>(v >= -9223372036854775808.0 && v < 9223372036854775808.0, "item(): the value",
                      v, "is no 64-bit integer");
    return int64_t(v);
  }
  int64_t value = 0;
  visit_all(dtype(), [&]<class T>() {
    if constexpr (std::is_integral_v<T>) value = int64_t(*static_cast<const T*>(p));
  });
  return value;
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  Scope scope("to_vector");
  check(defined(), "the tensor is undefined");
  check<DeviceError>(device().is_cpu(), "the tensor is on", device(),
                     "; copy it with to(kCpuDevice)");
  using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;  // vector<bool> is bits
  std::vector<Stored> values(static_cast<size_t>(numel()));
  Tensor target = from_blob(values.data(), shape(), dtype_of<T>());
  kernels::copy(Cpu{}, read(), target.write());
  if constexpr (std::is_same_v<T, bool>)
    return std::vector<bool>(values.begin(), values.end());
  else
    return values;
}
template std::vector<float> Tensor::to_vector() const;
template std::vector<double> Tensor::to_vector() const;
template std::vector<Half> Tensor::to_vector() const;
template std::vector<BFloat16> Tensor::to_vector() const;
template std::vector<int8_t> Tensor::to_vector() const;
template std::vector<uint8_t> Tensor::to_vector() const;
template std::vector<int16_t> Tensor::to_vector() const;
template std::vector<int32_t> Tensor::to_vector() const;
template std::vector<long> Tensor::to_vector() const;
template std::vector<long long> Tensor::to_vector() const;
template std::vector<bool> Tensor::to_vector() const;

Tensor Tensor::to(DType dtype) const { return cast(*this, dtype); }
Tensor Tensor::to(Device device) const {
  Scope scope("to");
  check(defined(), "the tensor is undefined");
  if (device == this->device()) return *this;
  fail<DeviceError>("this build of tapegrad cannot copy from", this->device(), "to", device);
}
Tensor Tensor::contiguous() const { return tg::contiguous(*this); }
Tensor Tensor::clone() const { return tg::clone(*this); }

Tensor Tensor::operator[](int64_t i) const { return select(*this, 0, i); }
Tensor Tensor::index(std::initializer_list<Index> indices) const {
  return tg::index(*this, std::vector<Index>(indices));
}
const Tensor& Tensor::index_put_(std::initializer_list<Index> indices, const Tensor& value) const {
  return tg::index_put_(*this, std::vector<Index>(indices), value);
}
const Tensor& Tensor::index_put_(std::initializer_list<Index> indices, Scalar value) const {
  check(defined(), "index_put_: the tensor is undefined");
  return tg::index_put_(*this, std::vector<Index>(indices), scalar_tensor(value, options()));
}

Tensor Tensor::operator-() const { return neg(*this); }
const Tensor& Tensor::operator+=(const Tensor& o) const { return add_(*this, o); }
const Tensor& Tensor::operator-=(const Tensor& o) const { return sub_(*this, o); }
const Tensor& Tensor::operator*=(const Tensor& o) const { return mul_(*this, o); }
const Tensor& Tensor::operator/=(const Tensor& o) const { return div_(*this, o); }
const Tensor& Tensor::operator+=(Scalar s) const { return add_(*this, s); }
const Tensor& Tensor::operator-=(Scalar s) const { return sub_(*this, s); }
const Tensor& Tensor::operator*=(Scalar s) const { return mul_(*this, s); }
const Tensor& Tensor::operator/=(Scalar s) const { return div_(*this, s); }

}  // namespace tg
