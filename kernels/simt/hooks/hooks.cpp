#include "tapegrad/kernels/simt/hooks/hooks.h"

#include <link.h>
#include <unistd.h>

#include <cstdio>
#include <set>
#include <utility>

#include "tapegrad/kernels/simt/builtins.h"
#include "tapegrad/kernels/simt/hooks/races.h"
#include "tapegrad/kernels/simt/observer.h"
#include "tapegrad/kernels/simt/runtime/state.h"
#include "tapegrad/kernels/simt/settings.h"

namespace tg::simt::hooks {
namespace {

// Where the program itself lies: its code and constants, and its thread-local variables, among them
// every __shared__ array.
struct Program {
  uintptr_t base = 0, thread_begin = 0, thread_end = 0;
  std::vector<std::pair<uintptr_t, uintptr_t>> segments;
  bool holds(uintptr_t a) const {
    for (auto [begin, end] : segments)
      if (a >= begin && a < end) return true;
    return false;
  }
};

int read_program(dl_phdr_info* info, size_t, void* out) {
  if (info->dlpi_name[0]) return 0;  // a library
  Program& p = *static_cast<Program*>(out);
  p.base = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& h = info->dlpi_phdr[i];
    if (h.p_type == PT_LOAD)
      p.segments.push_back({p.base + h.p_vaddr, p.base + h.p_vaddr + h.p_memsz});
    if (h.p_type == PT_TLS) {
      p.thread_begin = reinterpret_cast<uintptr_t>(info->dlpi_tls_data);
      p.thread_end = p.thread_begin + h.p_memsz;
    }
  }
  return 1;
}

const Program& program() {
  static const Program found = [] {
    Program p;
    dl_iterate_phdr(read_program, &p);
    return p;
  }();
  return found;
}

template <class T>
bool within(uintptr_t a, const T& variable) {
  const auto begin = reinterpret_cast<uintptr_t>(&variable);
  return a >= begin && a < begin + sizeof variable;
}
bool is_builtin(uintptr_t a) {
  return within(a, threadIdx) || within(a, blockIdx) || within(a, blockDim) || within(a, gridDim);
}

class Watch : public Observer {
 public:
  void launch_begins(const Launch& launch) override {
    races_.launch_begins();
    kernel_ = launch.kernel;
    counters_.kernel_begins(kernel_);
  }
  void block_begins(unsigned threads) override {
    counters_.block_begins(threads);
    races_.block_begins(threads);
  }
  void block_met() override {
    counters_.close();
    races_.block_met();
  }
  void warp_met(unsigned warp) override { races_.warp_met(warp); }
  void block_ends() override { counters_.close(); }
  void copy_writes(const void* shared, int bytes) override {
    on_access(shared, unsigned(bytes), true, false, nullptr);
  }

  void see(Access access, uintptr_t address) {
    std::string wrong = place(access, address);
    if (wrong.empty()) {
      counters_.add(access);
      wrong = races_.check(access);
    }
    // Once for each line and kind of fault.
    if (wrong.empty() || !told_.insert({access.code, wrong.substr(0, 20)}).second) return;
    report("kernel " + kernel_ + ": " + wrong);
  }
  Counters& counters() { return counters_; }
  void clear() {
    counters_.clear();
    told_.clear();
  }

 private:
  // Which memory it is, and where in it.
  std::string place(Access& access, uintptr_t address) const {
    const Program& p = program();
    if (address >= p.thread_begin && address < p.thread_end) {
      access.memory = Memory::shared;
      access.address = address - p.thread_begin;
      return "";
    }
    access.address = address;
    const Allocation* a = find_allocation(reinterpret_cast<const void*>(address));
    const char* end = reinterpret_cast<const char*>(address) + access.bytes;
    if (a && a->on_device && end <= a->begin + a->bytes) return "";
    const auto dynamic = reinterpret_cast<uintptr_t>(dynamic_shared());
    const size_t bytes = dynamic_shared_bytes();
    if (bytes && address >= dynamic && address < dynamic + bytes + 64) {
      access.memory = Memory::shared;
      // Behind the static ones, from a multiple of 128 bytes on: bank 0.
      access.address = (p.thread_end - p.thread_begin + 127) / 128 * 128 + address - dynamic;
      if (address + access.bytes <= dynamic + bytes) return "";
      return "access past the end of dynamic shared memory, at " + line_of(access.code);
    }
    return std::string(access.write ? "write" : "read") + " outside of device memory, at " +
           line_of(access.code) + " by thread " + std::to_string(access.thread);
  }

  std::string kernel_;
  Counters counters_;
  Races races_;
  std::set<std::pair<const void*, std::string>> told_;
};

Watch& watch() {
  static Watch one;
  return one;
}

}  // namespace

void start() {
  settings().parallel_blocks = false;
  program();
  observer() = &watch();
}
void stop() { observer() = nullptr; }

void on_access(const void* pointer, unsigned bytes, bool write, bool atomic, const void* code) {
  // Functions of the standard library that this code uses may have been compiled with a kernel.
  static bool inside = false;
  unsigned thread = 0;
  if (inside || !observer() || !in_kernel(thread) || on_own_stack(pointer)) return;
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  // Constants and literals of the program; where a thread stands.
  if (is_builtin(address) || program().holds(address)) return;
  inside = true;
  watch().see({0, bytes, write, atomic, code, Memory::global, thread}, address);
  inside = false;
}

std::string line_of(const void* code) {
  if (!code) return "a copy beside the arithmetic";
  static std::map<const void*, std::string> known;
  std::string& line = known[code];
  if (!line.empty()) return line;
  line = "an unknown line";
  // The call itself lies before the address it returns to.
  char command[200];
  std::snprintf(command, sizeof command, "addr2line -i -e /proc/%d/exe 0x%zx 2>/dev/null", getpid(),
                reinterpret_cast<size_t>(code) - 1 - program().base);
  FILE* pipe = popen(command, "r");
  if (!pipe) return line;
  for (char buffer[1000]; std::fgets(buffer, sizeof buffer, pipe);) {
    std::string text = buffer;
    text = text.substr(0, text.find('\n'));
    text = text.substr(0, text.rfind(" (discriminator"));
    const bool inner = text.find("/kernels/simt/") != text.npos ||
                       text.find("/cuda/device.cuh") != text.npos ||
                       text.find("/include/c++/") != text.npos;
    if (inner) continue;
    line = text.substr(text.rfind('/') == text.npos ? 0 : text.rfind('/') + 1);
    break;
  }
  pclose(pipe);
  return line;
}

std::string cost_table(const std::string& part) { return watch().counters().table(part); }
namespace {
double ratio(const LineCost& cost) {
  return cost.least ? double(cost.moved) / double(cost.least) : 1;
}
}  // namespace
double bank_conflicts(const std::string& part) {
  return ratio(watch().counters().total(part, Memory::shared));
}
double scattered(const std::string& part) {
  return ratio(watch().counters().total(part, Memory::global));
}
void clear_costs() { watch().clear(); }

}  // namespace tg::simt::hooks
