#include "tapegrad/core/tensor.h"

#include <algorithm>

#include "tapegrad/core/thread_state.h"

namespace tg {

AutogradMeta::~AutogradMeta() = default;

void detail::fail_undefined() {
  fail("the tensor is undefined: it was never given a value, as a gradient before any backward");
}

void destroy(TensorImpl* impl) {
  delete impl->meta;
  delete impl;
}

namespace {

// Strides of a tensor without elements address nothing: every layout is right.
bool has_no_elements(const Shape& shape) {
  return std::find(shape.begin(), shape.end(), 0) != shape.end();
}

}  // namespace

// These run in every call, so they read through begin().
bool is_contiguous(const Shape& shape, const Shape& strides) {
  const int64_t *size = shape.begin(), *stride = strides.begin();
  int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (size[i] != 1 && stride[i] != step) return has_no_elements(shape);
    step = size_product(step, size[i]);
  }
  return true;
}

bool is_channels_last(const Shape& shape, const Shape& strides) {
  if (shape.rank() != 4) return false;
  int64_t step = 1;
  for (int i : {1, 3, 2, 0}) {
    if (shape[i] != 1 && strides[i] != step) return has_no_elements(shape);
    step = size_product(step, shape[i]);
  }
  return true;
}

bool is_dense(const Shape& shape, const Shape& strides) {
  if (is_contiguous(shape, strides)) return true;
  const int64_t *size = shape.begin(), *stride = strides.begin();
  int order[kMaxRank];  // dimensions of more than one element, by rising stride
  int n = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    if (size[i] == 1) continue;
    int at = n++;
    for (; at > 0 && stride[order[at - 1]] > stride[i]; --at) order[at] = order[at - 1];
    order[at] = i;
  }
  int64_t step = 1;
  for (int k = 0; k < n; ++k) {
    if (stride[order[k]] != step) return false;
    step = size_product(step, size[order[k]]);
  }
  return true;
}

const void* Tensor::checked_data(DType wanted) const {
  check(defined(), "data() of an undefined tensor");
  check<DTypeError>(dtype() == wanted, "the tensor holds", dtype(), "but", wanted,
                    "was asked for; convert with to()");
  check<DeviceError>(device().is_cpu(), "the tensor is on", device(),
                     "; copy it with to(kCpuDevice)");
  check<ShapeError>(is_contiguous(), "the tensor is not contiguous (strides", strides(),
                    "); use contiguous()");
  return address();
}

namespace {

[[noreturn]] void fail_too_many(const Shape& shape) {
  fail<ShapeError>("shape has more elements than can be addressed:", shape);
}

// Elements of a shape that somebody asked for; not even a view without memory of its own may have
// more than can be counted.
int64_t checked_numel(const Shape& shape) {
  int64_t n = 1;
  bool fits = true;
  for (int64_t size : shape) {
    check<ShapeError>(size >= 0, "negative size in shape", shape);
    fits = fits && !__builtin_mul_overflow(n, size, &n);
  }
  if (fits) return n;
  if (!has_no_elements(shape)) fail_too_many(shape);
  return 0;
}

// Bytes of a dense tensor; sizes are checked before anything is allocated.
size_t checked_bytes(const Shape& shape, DType dtype) {
  int64_t bytes = 0;
  if (__builtin_mul_overflow(checked_numel(shape), int64_t(size_of(dtype)), &bytes))
    fail_too_many(shape);
  return size_t(bytes);
}

Tensor make(const Shape& shape, const Shape& strides, TensorOptions o, Purpose purpose) {
  auto storage = make_storage(o.device, checked_bytes(shape, o.dtype), purpose);
  auto* impl = new TensorImpl;
  impl->dtype = o.dtype;
  impl->inference = thread_state.inference_mode;
  impl->storage = std::move(storage);
  impl->shape = shape;
  impl->strides = strides;
  impl->numel = shape.numel();
  return Tensor(Ref<TensorImpl>::adopt(impl));
}

}  // namespace

Tensor empty(const Shape& shape, TensorOptions options, Purpose purpose) {
  return make(shape, contiguous_strides(shape), options, purpose);
}

Tensor empty_strided(const Shape& shape, const Shape& strides, TensorOptions options) {
  check<InternalError>(is_dense(shape, strides), "empty_strided: not a dense layout:", shape,
                       strides);
  return make(shape, strides, options, Purpose::other);
}

Tensor empty_like(const Tensor& x) { return empty_like(x, x.dtype()); }

Tensor empty_like(const Tensor& x, DType dtype) {
  if (x.is_contiguous() || !is_dense(x.shape(), x.strides()))
    return empty(x.shape(), {dtype, x.device()});
  return make(x.shape(), x.strides(), {dtype, x.device()}, Purpose::other);
}

Tensor alias(const Tensor& x, const Shape& shape, const Shape& strides, int64_t offset) {
  int64_t numel = checked_numel(shape);
  auto* impl = new TensorImpl;
  impl->dtype = x.dtype();
  impl->inference = x.impl()->inference;
  impl->storage = x.impl()->storage;
  impl->shape = shape;
  impl->strides = strides;
  impl->numel = numel;
  impl->offset = offset;
  return Tensor(Ref<TensorImpl>::adopt(impl));
}

Tensor from_blob(void* data, const Shape& shape, DType dtype, Function<void()> release) {
  size_t bytes = checked_bytes(shape, dtype);
  check<ValueError>(data != nullptr || bytes == 0, "from_blob: a null pointer for shape", shape);
  auto* impl = new TensorImpl;
  impl->dtype = dtype;
  impl->storage = wrap_storage(kCpuDevice, data, bytes, std::move(release));
  impl->shape = shape;
  impl->strides = contiguous_strides(shape);
  impl->numel = shape.numel();
  return Tensor(Ref<TensorImpl>::adopt(impl));
}

std::string to_text(const Tensor& x) {
  if (!x.defined()) return "undefined";
  std::string text = to_text(x.dtype()) + to_text(x.shape());
  if (!x.device().is_cpu()) text += "@" + to_text(x.device());
  return text;
}

}  // namespace tg
