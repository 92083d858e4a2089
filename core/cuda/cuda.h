// What core and the operators ask of CUDA devices, in plain types: no header of CUDA is needed to
// include this. The functions exist in builds with TAPEGRAD_CUDA only; call them within
// `if constexpr (kCuda)`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "tapegrad/core/device.h"

namespace tg {

#ifdef TAPEGRAD_CUDA
inline constexpr bool kCuda = true;
#else
inline constexpr bool kCuda = false;
#endif

// Devices that can be used: 0 in a build without CUDA, and where there is none or no driver.
int cuda_device_count();
// One line for people: the devices there are, or why there is none and what to do.
std::string cuda_status();

namespace cuda {

inline constexpr int kMostDevices = 64;

// DeviceError, with the reason, unless there is such a device.
void require(Device device);
// Makes it the one that the calling thread launches on.
void enter(Device device);
Device current_device();

// A block of at least `bytes` bytes, or null where the device has no more, also after the cached
// blocks were given back. A freed block serves the next request of its size: all work of a device
// runs in one stream, so what still uses it comes first.
void* take_block(Device device, size_t bytes);
void give_block(Device device, void* block, size_t bytes) noexcept;
void release_cached_blocks(Device device);
int64_t reserved_bytes(Device device);

// Bytes from one device's memory to another's, of which at most one is the CPU. Comes after what
// was launched before. To the CPU it waits until the bytes are there; from the CPU the source may
// be changed when it returns.
void copy(Device to_device, void* to, Device from_device, const void* from, size_t bytes);
// Waits for all that was launched; raises what went wrong there.
void synchronize(Device device);

}  // namespace cuda
}  // namespace tg
