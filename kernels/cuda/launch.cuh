// Launching a kernel, in one spelling for both compilers:
//
//   gpu::launch<softmax_kernel<float>>({blocks, threads, shared_bytes, stream}, x, y, columns);
#pragma once
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tapegrad/kernels/cuda/device.cuh"

#ifndef __CUDACC__
#include "tapegrad/kernels/simt/runtime/launch.h"
#endif

namespace tg::gpu {

struct Config {
  dim3 grid, block;
  size_t shared = 0;
  cudaStream_t stream = nullptr;
};

#ifdef __CUDACC__

template <auto kKernel, class... Args>
cudaError_t launch(const Config& c, Args&&... args) {
  kKernel<<<c.grid, c.block, c.shared, c.stream>>>(std::forward<Args>(args)...);
  return cudaGetLastError();
}

#else

namespace detail {

// The arguments of a launch, copied as the real one does. The instrumented flavour must not take
// reading them for a kernel's own access.
template <class... P>
struct Arguments {
  void (*kernel)(P...);
  std::tuple<P...> values;

  __attribute__((no_sanitize("thread"))) static void call(const void* arguments) {
    const auto* a = static_cast<const Arguments*>(arguments);
    spread(*a, std::index_sequence_for<P...>());
  }
  template <size_t... kIndex>
  __attribute__((no_sanitize("thread"))) static void spread(const Arguments& a,
                                                            std::index_sequence<kIndex...>) {
    a.kernel(std::get<kIndex>(a.values)...);
  }
};

// "softmax_kernel<float>" out of what the compiler calls a template over it.
template <auto kKernel>
std::string_view kernel_name() {
  std::string_view text = __PRETTY_FUNCTION__;
  size_t begin = text.find("kKernel = ");
  if (begin == text.npos) return text;
  text.remove_prefix(begin + 10);
  return text.substr(0, text.find(';') == text.npos ? text.rfind(']') : text.find(';'));
}

template <class... P, class... Args>
cudaError_t launch(std::string_view name, void (*kernel)(P...), const Config& c, Args&&... args) {
  using A = Arguments<P...>;
  auto arguments = std::make_shared<A>(A{kernel, {static_cast<P>(args)...}});
  return simt::enqueue({std::string(name), c.grid, c.block, c.shared, arguments, &A::call},
                       reinterpret_cast<const void*>(kernel), c.stream);
}

}  // namespace detail

template <auto kKernel, class... Args>
cudaError_t launch(const Config& c, Args&&... args) {
  return detail::launch(detail::kernel_name<kKernel>(), kKernel, c, std::forward<Args>(args)...);
}

#endif

}  // namespace tg::gpu
