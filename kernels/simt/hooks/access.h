// The instrumented flavour: kernels compiled with -fsanitize=thread, whose every load and store
// calls a function, linked with functions of ours instead of that sanitizer's library. They see
// address, size and line of each access, and so can tell races, shared memory that nobody wrote,
// bank conflicts and scattered accesses, without a change to the kernels.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace tg::simt::hooks {

// Starts to watch; from then on blocks run one after the other. What is found goes to
// take_report().
void start();
void stop();

enum class Memory : uint8_t { shared, global };

// One access of one thread, as the instrumented code reports it.
struct Access {
  uintptr_t address = 0;  // of shared memory: from its start
  unsigned bytes = 0;
  bool write = false, atomic = false;
  const void* code = nullptr;  // where the call returns to; null for a copy beside the arithmetic
  Memory memory = Memory::global;
  unsigned thread = 0;
};
void on_access(const void* address, unsigned bytes, bool write, bool atomic, const void* code);

// "softmax.cu:31", the innermost line that is not one of the emulator's own headers.
std::string line_of(const void* code);

}  // namespace tg::simt::hooks
