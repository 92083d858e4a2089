// What device code asks of the engine that runs it: to wait for others, to meet them, to give up.
#pragma once
#include <vector_types.h>

#include <cstddef>
#include <memory>
#include <string>

namespace tg::simt {

// A line of source. As a default argument, here() is the line of the caller.
struct Place {
  const char* file = "";
  int line = 0;
  static constexpr Place here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};
std::string to_text(Place place);  // "softmax.cu:31"

// ---- For device code: only while a kernel runs on this thread.

// All threads of the block that have not ended meet here.
void block_barrier(Place place);
// The same, and tells how many of them brought a true.
struct Votes {
  int yes = 0, all = 0;
};
Votes block_votes(bool mine, Place place);

// The lanes of a warp that `mask` names meet. The last one to arrive calls meet(payloads, lanes)
// for all of them; payloads[i] is what lane i brought. meet may be null: they just wait.
using Meet = void (*)(void* const* payloads, unsigned lanes);
void warp_meeting(unsigned mask, Meet meet, void* payload, const char* what, Place place);

unsigned lane();
// Ends the launch with an error that names kernel, block, thread and line.
[[noreturn]] void fault(std::string what, Place place);
unsigned char* dynamic_shared();
size_t dynamic_shared_bytes();

// cp.async: a copy of `bytes` bytes to shared memory, followed by zeros up to `total`. It happens
// when the thread waits for its group, so that a wait that is missing or too weak shows.
void copy_later(void* shared, const void* global, int bytes, int total);
void close_copy_group();
void wait_for_copies(int groups_left);

// ---- For the launch of a kernel.

// A kernel and its arguments, copied when it was launched.
struct Launch {
  std::string kernel;
  dim3 grid, block;
  size_t shared = 0;
  std::shared_ptr<const void> arguments;
  void (*call)(const void* arguments) = nullptr;
};
// "" or what went wrong, in one line.
std::string run(const Launch& launch);

}  // namespace tg::simt
