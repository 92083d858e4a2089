// The tensor: one pointer to a counted description of a strided block of memory. Copying a
// Tensor shares it, as in PyTorch. Operators are free functions (autograd/ops.h).
#pragma once
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "tapegrad/core/error.h"
#include "tapegrad/core/scalar.h"
#include "tapegrad/core/storage.h"
#include "tapegrad/core/view.h"

namespace tg {

// What autograd hangs on a tensor. Core can destroy it and knows nothing else.
struct AutogradMeta {
  virtual ~AutogradMeta();
};

struct TensorImpl : PooledObject {
  std::atomic<int32_t> refs{1};
  DType dtype = DType::f32;
  // 1: a view made under no-grad, not to be written in a recorded operation; 2: and what it views
  // requires grad, so it is not to be written with grad mode on at all.
  uint8_t view_without_grad = 0;
  bool inference = false;  // made under InferenceGuard: never recorded
  Ref<Storage> storage;
  int64_t offset = 0;  // in elements
  int64_t numel = 0;
  Shape shape, strides;
  AutogradMeta* meta = nullptr;  // owned
};
void destroy(TensorImpl* impl);

// How a new tensor is made: zeros({2, 3}, f64), ones({4}, device), empty({2}, {f16, device}).
struct TensorOptions {
  DType dtype = DType::f32;
  Device device;
  TensorOptions() = default;
  TensorOptions(DType t, Device d = {}) : dtype(t), device(d) {}
  TensorOptions(Device d) : device(d) {}
};

namespace detail {
[[noreturn]] void fail_undefined();
}

class Index;  // autograd/ops/indexing.h: an integer, slice, none, ellipsis or tensor

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  // Not to what an expression returned: x[0] = y would change nothing. copy_(x[0], y) writes.
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;

  bool defined() const { return bool(impl_); }
  explicit operator bool() const = delete;  // `if (tensor)` is ambiguous: defined()? item()?

  const Shape& shape() const { return checked().shape; }
  const Shape& strides() const { return checked().strides; }
  int64_t dim() const { return shape().rank(); }
  int64_t size(int64_t d) const { return shape()[int(wrap_dim(d, dim()))]; }
  int64_t stride(int64_t d) const { return strides()[int(wrap_dim(d, dim()))]; }
  int64_t numel() const { return checked().numel; }
  int64_t offset() const { return checked().offset; }
  DType dtype() const { return checked().dtype; }
  Device device() const { return checked().storage->device; }
  TensorOptions options() const { return {dtype(), device()}; }
  bool is_contiguous() const { return tg::is_contiguous(shape(), strides()); }
  bool is_channels_last() const { return tg::is_channels_last(shape(), strides()); }
  bool is_floating() const { return tg::is_floating(dtype()); }
  bool shares_storage(const Tensor& o) const { return checked().storage == o.checked().storage; }
  bool same(const Tensor& o) const { return impl_ == o.impl_; }  // one tensor, not equal values

  // For kernels. write() is the one place that raises the version.
  View read() const {
    const TensorImpl& i = checked();
    return View{{address(), i.dtype, &i.shape, &i.strides, i.numel}};
  }
  MutView write() const {
    const TensorImpl& i = checked();
    i.storage->bump_version();
    return MutView{{address(), i.dtype, &i.shape, &i.strides, i.numel}};
  }
  uint32_t version() const { return checked().storage->version.load(std::memory_order_relaxed); }

  // For people and tests. Raises unless T fits the dtype, the device is the CPU and the tensor is
  // contiguous; valid as long as the tensor lives. mutable_data raises the version.
  template <class T>
  const T* data() const {
    return static_cast<const T*>(checked_data(dtype_of<T>()));
  }
  template <class T>
  T* mutable_data() const {
    checked().storage->bump_version();
    return static_cast<T*>(const_cast<void*>(checked_data(dtype_of<T>())));
  }

  TensorImpl* impl() const { return impl_.get(); }
  const Ref<TensorImpl>& ref() const { return impl_; }

  // ---- Declared here, defined in autograd/tensor_methods.cpp ----
  double item() const;  // the value of a one-element tensor of any dtype
  int64_t item_int64() const;
  // ... as a T; ValueError for an integer that T cannot hold.
  template <class T>
  T item() const {
    if constexpr (std::is_floating_point_v<T>) {
      return T(item());
    } else if constexpr (std::is_same_v<T, bool>) {
      return item() != 0;
    } else {
      int64_t value = item_int64();
      check<ValueError>(std::in_range<T>(value), "item: the value", value,
                        "does not fit the type that was asked for");
      return T(value);
    }
  }
  template <class T>
  std::vector<T> to_vector() const;  // all values, in logical order, converted to T

  Tensor to(DType dtype) const;    // shares when nothing changes; differentiable
  Tensor to(Device device) const;  // likewise
  Tensor contiguous() const;       // itself if it is
  Tensor clone() const;            // keeps a dense layout; differentiable
  Tensor detach() const;           // same memory, no history; shares the version

  const Tensor& requires_grad_(bool value = true) const;  // leaves of float type only
  bool requires_grad() const;
  bool is_leaf() const;
  Tensor grad() const;                   // undefined if there is none
  void set_grad(const Tensor& g) const;  // undefined clears it; shape and dtype are checked
  void retain_grad() const;              // keep the gradient of a non-leaf too
  void backward(const Tensor& gradient = {}, bool retain_graph = false,
                bool create_graph = false) const;

  Tensor operator[](int64_t i) const;  // select along dim 0
  Tensor index(std::initializer_list<Index> indices) const;
  const Tensor& index_put_(std::initializer_list<Index> indices, const Tensor& value) const;
  const Tensor& index_put_(std::initializer_list<Index> indices, Scalar value) const;

  Tensor operator-() const;
  const Tensor& operator+=(const Tensor& o) const;
  const Tensor& operator-=(const Tensor& o) const;
  const Tensor& operator*=(const Tensor& o) const;
  const Tensor& operator/=(const Tensor& o) const;
  const Tensor& operator+=(Scalar s) const;
  const Tensor& operator-=(Scalar s) const;
  const Tensor& operator*=(Scalar s) const;
  const Tensor& operator/=(Scalar s) const;

 private:
  void* address() const {
    return static_cast<char*>(impl_->storage->data) +
           impl_->offset * int64_t(size_of(impl_->dtype));
  }
  const void* checked_data(DType wanted) const;
  const TensorImpl& checked() const {
    if (!impl_) [[unlikely]]
      detail::fail_undefined();
    return *impl_;
  }
  Ref<TensorImpl> impl_;
};

// Memory that is not initialised: contiguous, or with the given strides of a dense layout.
Tensor empty(const Shape& shape, TensorOptions options = {}, Purpose purpose = Purpose::other);
Tensor empty_strided(const Shape& shape, const Shape& strides, TensorOptions options = {});
// The shape, dtype, device of x, and its strides if x is dense; else contiguous.
Tensor empty_like(const Tensor& x);
Tensor empty_like(const Tensor& x, DType dtype);
// A tensor of other shape and strides over the memory of x (no checks, no history).
Tensor alias(const Tensor& x, const Shape& shape, const Shape& strides, int64_t offset);
// A tensor over memory of the caller (CPU, row-major); `release` runs when it is let go.
Tensor from_blob(void* data, const Shape& shape, DType dtype, Function<void()> release = {});

// "f32[2,3]" for messages.
std::string to_text(const Tensor& x);

}  // namespace tg
