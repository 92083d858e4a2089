// Device memory for tests, and the settings that a test starts from.
#pragma once
#include <vector>

#include "catch.h"
#include "tapegrad/kernels/cuda/launch.cuh"
#include "tapegrad/kernels/simt/settings.h"

namespace tg::test {

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t count) : count_(count) {
    REQUIRE(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T)) == cudaSuccess);
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    REQUIRE(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice) ==
            cudaSuccess);
  }
  ~DeviceArray() {
    if (data_) cudaFree(data_);
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* get() const { return data_; }
  std::vector<T> values() const {
    std::vector<T> host(count_);
    REQUIRE(cudaMemcpy(host.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost) ==
            cudaSuccess);
    return host;
  }
  void forget() { data_ = nullptr; }  // after cudaDeviceReset

 private:
  T* data_ = nullptr;
  size_t count_;
};

// The three orders in which threads may run.
inline const simt::Order kOrders[] = {simt::Order::forward, simt::Order::reverse,
                                      simt::Order::shuffled};

// Default settings, no fault and an empty report, before and after.
struct FreshDevice {
  simt::SettingsGuard settings;
  FreshDevice() { reset(); }
  ~FreshDevice() { reset(); }
  static void reset() {
    cudaDeviceReset();
    simt::take_report();
  }
};

}  // namespace tg::test
