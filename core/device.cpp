#include "tapegrad/core/device.h"

#include "tapegrad/core/cuda/cuda.h"
#include "tapegrad/core/error.h"

namespace tg {

Device::Device(const std::string& text) {
  if (text == "cpu") return;
  bool ok = text.rfind("cuda", 0) == 0;
  std::string rest = ok ? text.substr(4) : "";
  if (ok && !rest.empty())
    ok = rest.size() <= 3 && rest.size() >= 2 && rest[0] == ':' &&
         rest.find_first_not_of("0123456789", 1) == std::string::npos;
  check<DeviceError>(ok, "unknown device '" + text + "'; known are cpu, cuda and cuda:N");
  kind = cuda;
  index = int8_t(rest.empty() ? 0 : std::stoi(rest.substr(1)));
}

std::string to_text(Device d) {
  return d.is_cpu() ? "cpu" : "cuda:" + std::to_string(int(d.index));
}

// A build with CUDA has its own, in core/cuda.
#ifndef TAPEGRAD_CUDA
int cuda_device_count() { return 0; }
std::string cuda_status() {
  return "this build has no CUDA: configure with -DTAPEGRAD_CUDA=ON (needs nvcc) or "
         "-DTAPEGRAD_CUDA=EMULATED (runs kernels on the CPU)";
}
#endif

}  // namespace tg
