#include "tapegrad/kernels/simt/hooks/races.h"

namespace tg::simt::hooks {
namespace {

std::string told(const char* what, const Access& now, const char* relation, const Moment& before,
                 uint32_t block) {
  std::string text = std::string(now.memory == Memory::shared ? "shared" : "global") +
                     " memory race: " + what + " at " + line_of(now.code) + " by thread " +
                     std::to_string(now.thread) + " is not ordered " + relation + " at " +
                     line_of(before.code) + " by thread " + std::to_string(before.thread);
  return before.block == block ? text : text + " of another block";
}

}  // namespace

void Races::block_begins(unsigned threads) {
  ++block_;
  block_meetings_ = 0;
  warp_meetings_.assign((threads + 31) / 32, 0);
  shared_.clear();
}

Races::Byte& Races::byte_at(const Access& access, uintptr_t offset) {
  auto& bytes = access.memory == Memory::shared ? shared_ : global_;
  return bytes[access.address + offset];
}

bool Races::ordered(const Moment& before, const Access& now) const {
  if (before.block != block_) return false;
  return before.thread == now.thread || before.block_meetings < block_meetings_ ||
         (before.thread / 32 == now.thread / 32 &&
          before.warp_meetings < warp_meetings_[now.thread / 32]);
}

std::string Races::check_byte(Byte& b, const Access& now) {
  std::string wrong;
  if (b.write.happened && !(b.atomic && now.atomic) && !ordered(b.write, now))
    wrong = told(now.write ? "write" : "read", now, "after the write", b.write, block_);
  const bool readers_met = b.read.block == block_ && b.read.block_meetings < block_meetings_;
  if (wrong.empty() && now.write && b.read.happened && !(b.atomic_reads && now.atomic) &&
      !readers_met && (b.several_read || !ordered(b.read, now)))
    wrong = told("write", now, "after the read", b.read, block_);
  if (wrong.empty() && now.memory == Memory::shared && !now.write && !b.write.happened)
    wrong = "reads shared memory that nobody wrote, at " + line_of(now.code) + " by thread " +
            std::to_string(now.thread);

  const Moment moment{block_,   now.thread, block_meetings_, warp_meetings_[now.thread / 32],
                      now.code, true};
  if (now.write) {
    b.write = moment;
    b.atomic = now.atomic;
    b.read.happened = b.several_read = false;
  } else {
    const bool first = !b.read.happened || readers_met;
    b.several_read = !first && (b.several_read || b.read.thread != now.thread);
    // What may race with an atomic write is remembered, whatever atomic reads follow.
    if (first || b.atomic_reads || !now.atomic) b.read = moment;
    b.atomic_reads = now.atomic && (first || b.atomic_reads);
  }
  return wrong;
}

std::string Races::check(const Access& access) {
  std::string first;
  for (uintptr_t i = 0; i < access.bytes; ++i) {
    std::string wrong = check_byte(byte_at(access, i), access);
    if (first.empty()) first = std::move(wrong);
  }
  return first;
}

}  // namespace tg::simt::hooks
