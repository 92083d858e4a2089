#include "tapegrad/core/cuda/runtime.h"

#include <mutex>

#include "tapegrad/core/error.h"

namespace tg {
namespace {

struct Devices {
  int count = 0;
  std::string status;
};

Devices find_devices() {
  Devices d;
  cudaError_t error = cudaGetDeviceCount(&d.count);
  if (error != cudaSuccess || d.count == 0) {
    cudaGetLastError();  // not an error of whoever asks next
    d.count = 0;
    d.status = error == cudaErrorInsufficientDriver
                   ? "none can be used: there is no NVIDIA driver, or one older than this build "
                     "needs; install or update it"
                   : std::string("none can be used: ") + cudaGetErrorString(error);
    return d;
  }
  for (int i = 0; i < d.count; ++i) {
    cudaDeviceProp p;
    if (cudaGetDeviceProperties(&p, i) != cudaSuccess) continue;
    d.status += (i ? ", " : "") + to_text(Device(Device::cuda, i)) + " (" + p.name +
                ", compute capability " + std::to_string(p.major) + "." + std::to_string(p.minor) +
                ")";
  }
  return d;
}

const Devices& devices() {
  static const Devices found = find_devices();
  return found;
}

}  // namespace

int cuda_device_count() { return devices().count; }
std::string cuda_status() { return devices().status; }

namespace cuda {

void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  fail<DeviceError>(std::string(call) + ":", cudaGetErrorString(error));
}

void require(Device device) {
  if (device.index >= 0 && device.index < cuda_device_count()) return;
  fail<DeviceError>("there is no device " + to_text(device) + ";", cuda_status());
}

void enter(Device device) {
  int current = -1;
  check(cudaGetDevice(&current), "cudaGetDevice");
  if (current != device.index) check(cudaSetDevice(device.index), "cudaSetDevice");
}

Device current_device() {
  int index = 0;
  check(cudaGetDevice(&index), "cudaGetDevice");
  return {Device::cuda, index};
}

cudaStream_t stream() {
  static std::mutex mutex;
  static cudaStream_t streams[kMostDevices] = {};
  const int device = current_device().index;
  std::lock_guard<std::mutex> lock(mutex);
  cudaStream_t& s = streams[device];
  if (!s) check(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "cudaStreamCreate");
  return s;
}

void copy(Device to_device, void* to, Device from_device, const void* from, size_t bytes) {
  if (bytes == 0) return;
  enter(to_device.is_cpu() ? from_device : to_device);
  const cudaStream_t s = stream();
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, s), "cudaMemcpyAsync");
  // Pinned memory of a caller would still be read, and that of another device still written.
  if (!(to_device == from_device)) check(cudaStreamSynchronize(s), "cudaStreamSynchronize");
}

void synchronize(Device device) {
  require(device);
  enter(device);
  check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
}

}  // namespace cuda
}  // namespace tg
