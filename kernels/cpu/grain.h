// How finely work is cut for the threads.
#pragma once
#include <cstdint>

namespace tg::kernels {

// Elements that a thread takes at once, at least: below that, handing work over costs more.
inline constexpr int64_t kElementGrain = 32768;

}  // namespace tg::kernels
