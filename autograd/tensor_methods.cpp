// The members of Tensor that are operators. Those of the tape (requires_grad, backward, ...) stand
// beside the engine.
#include <cmath>
#include <cstring>

#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops/arithmetic.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/indexing.h"
#include "tapegrad/autograd/ops/unary.h"
#include "tapegrad/autograd/ops/views.h"
#include "tapegrad/core/cuda/cuda.h"
#include "tapegrad/core/scope.h"
#include "tapegrad/core/tensor.h"
#include "tapegrad/kernels/copy.h"
#include "tapegrad/kernels/dispatch.h"

namespace tg {
namespace {

// x, or what it holds on a GPU brought to the CPU: this waits for the GPU.
Tensor on_cpu(const Tensor& x, const char* who) {
  check(x.defined(), std::string(who) + " of an undefined tensor");
  return x.device().is_cpu() ? x : x.detach().to(kCpuDevice);
}

// The memory of the one element; the tensor keeps it alive.
const void* only_element(const Tensor& x) {
  check<ShapeError>(x.numel() == 1, "item() needs exactly one element, got shape", x.shape());
  return x.read().data;
}

}  // namespace

double Tensor::item() const {
  const Tensor here = on_cpu(*this, "item()");
  const void* p = only_element(here);
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
  const Tensor here = on_cpu(*this, "item()");
  const void* p = only_element(here);
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
  const Tensor here = on_cpu(*this, "to_vector()");
  using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;  // vector<bool> is bits
  std::vector<Stored> values(static_cast<size_t>(numel()));
  Tensor target = from_blob(values.data(), shape(), dtype_of<T>());
  kernels::copy(Cpu{}, here.read(), target.write());
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

// y = x elsewhere, in x's layout where that has no gaps    dx = dy back where x is
Tensor Tensor::to(Device device) const {
  Op op("to");
  check(defined(), "the tensor is undefined");
  const Device here = this->device();
  if (device == here) return *this;
  const Tensor x = is_dense(shape(), strides()) ? *this : tg::contiguous(*this);
  Tensor y = empty_strided(x.shape(), x.strides(), {x.dtype(), device});
  if constexpr (kCuda)
    cuda::copy(device, y.write().data, here, x.read().data, size_t(x.numel()) * size_of(x.dtype()));
  return op.record(y, {x}, [here](const Tensor& dy, Needs) -> Grads { return {dy.to(here)}; });
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
