// From a device and a dtype at run time to a tag and a type at compile time.
#pragma once
#include "tapegrad/core/cuda/cuda.h"
#include "tapegrad/core/device.h"
#include "tapegrad/core/error.h"
#include "tapegrad/core/view.h"

namespace tg {

// A kernel interface is two overloads on these tags: softmax(Cpu, ...) and softmax(Cuda, ...).
struct Cpu {};
struct Cuda {};

// Calls fn(tag) for the device: the only branch on a device outside of the allocators. A build
// without CUDA never instantiates the other side, so it needs no stand-ins.
template <class F>
void on(Device device, F&& fn) {
  if (device.kind == Device::cpu) return fn(Cpu{});
  if constexpr (kCuda) {
    cuda::enter(device);
    return fn(Cuda{});
  } else {
    fail<DeviceError>("there is no device " + to_text(device) + ";", cuda_status());
  }
}

// fn.template operator()<T>() for the C++ type of a dtype:  visit_float(t, [&]<class T>() {...});
// Types outside the named set raise a DTypeError.
template <class F>
void visit_float(DType t, F&& fn) {  // f32, f64
  switch (t) {
    case DType::f32:
      return fn.template operator()<float>();
    case DType::f64:
      return fn.template operator()<double>();
    default:
      fail<DTypeError>("works on f32 and f64, got", t);
  }
}
template <class F>
void visit_any_float(DType t, F&& fn) {  // f32, f64, and f16 and bf16 as Half and BFloat16
  switch (t) {
    case DType::f16:
      return fn.template operator()<Half>();
    case DType::bf16:
      return fn.template operator()<BFloat16>();
    case DType::f32:
    case DType::f64:
      return visit_float(t, fn);
    default:
      fail<DTypeError>("works on floats, got", t);
  }
}
template <class F>
void visit_integral(DType t, F&& fn) {  // i8 u8 i16 i32 i64
  switch (t) {
    case DType::i8:
      return fn.template operator()<int8_t>();
    case DType::u8:
      return fn.template operator()<uint8_t>();
    case DType::i16:
      return fn.template operator()<int16_t>();
    case DType::i32:
      return fn.template operator()<int32_t>();
    case DType::i64:
      return fn.template operator()<int64_t>();
    default:
      fail<DTypeError>("works on integers, got", t);
  }
}
template <class F>
void visit_all(DType t, F&& fn) {  // every dtype; f16 and bf16 as Half and BFloat16
  switch (t) {
    case DType::boolean:
      return fn.template operator()<bool>();
    default:
      return is_floating(t) ? visit_any_float(t, fn) : visit_integral(t, fn);
  }
}
// For code that only moves elements: an unsigned integer of the element's size.
template <class F>
void visit_bytes(DType t, F&& fn) {
  switch (size_of(t)) {
    case 1:
      return fn.template operator()<uint8_t>();
    case 2:
      return fn.template operator()<uint16_t>();
    case 4:
      return fn.template operator()<uint32_t>();
    default:
      return fn.template operator()<uint64_t>();
  }
}

}  // namespace tg
