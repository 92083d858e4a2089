#include "tapegrad/kernels/simt/hooks/counters.h"

#include <algorithm>
#include <bit>
#include <cstdio>

namespace tg::simt::hooks {
namespace {

// How many different pieces of `size` bytes the lanes of `mask` touch.
int64_t pieces(const uintptr_t* address, unsigned mask, unsigned bytes, unsigned size,
               std::vector<uintptr_t>& touched) {
  touched.clear();
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1)
      for (uintptr_t p = address[lane] / size; p <= (address[lane] + bytes - 1) / size; ++p)
        touched.push_back(p);
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  return int64_t(touched.size());
}

// Lanes that a shared request serves at a time: as many as fit into 128 bytes.
int lanes_at_once(unsigned bytes) { return bytes >= 16 ? 8 : bytes >= 8 ? 16 : 32; }

}  // namespace

void Counters::block_begins(unsigned threads) { times_.assign(threads, {}); }

void Counters::add(const Access& access) {
  if (!access.code) return;
  const unsigned lane = access.thread % 32;
  const unsigned nth = times_[access.thread][access.code]++;
  Request& r = open_[{access.thread / 32, access.code, nth}];
  if (r.lanes == 0) r.first = access;
  r.lanes |= 1u << lane;
  r.address[lane] = access.address;
}

void Counters::close() {
  std::vector<uintptr_t> touched;
  for (auto& [key, r] : open_) {
    LineCost& line = (*kernel_)[key.code];
    line.memory = r.first.memory;
    line.write = r.first.write;
    line.atomic = line.atomic || r.first.atomic;
    line.bytes = r.first.bytes;
    ++line.requests;
    const int lanes = std::popcount(r.lanes);
    line.lanes += lanes;
    if (r.first.memory == Memory::global) {
      line.moved += pieces(r.address, r.lanes, r.first.bytes, 32, touched);
      line.least += (lanes * int64_t(r.first.bytes) + 31) / 32;
      continue;
    }
    const int group = lanes_at_once(r.first.bytes);
    for (int first = 0; first < 32; first += group) {
      const unsigned all = group == 32 ? ~0u : (1u << group) - 1;
      const unsigned mask = r.lanes & all << first;
      if (!mask) continue;
      pieces(r.address, mask, r.first.bytes, 4, touched);
      int in_bank[32] = {}, most = 0;
      for (uintptr_t word : touched) most = std::max(most, ++in_bank[word % 32]);
      line.moved += most;
      line.least += 1;
    }
  }
  open_.clear();
  for (auto& times : times_) times.clear();
}

std::string Counters::table(const std::string& part) const {
  std::string text;
  for (const auto& [name, lines] : kernels_) {
    if (name.find(part) == name.npos) continue;
    std::map<std::string, LineCost> by_place;
    for (const auto& [code, cost] : lines) {
      char kind[64];
      std::snprintf(kind, sizeof kind, " %s %s %2u bytes",
                    cost.memory == Memory::shared ? "shared" : "global",
                    cost.atomic  ? "atomic"
                    : cost.write ? "store "
                                 : "load  ",
                    cost.bytes);
      LineCost& sum = by_place[line_of(code) + kind];
      sum.memory = cost.memory;
      sum.requests += cost.requests;
      sum.lanes += cost.lanes;
      sum.moved += cost.moved;
      sum.least += cost.least;
    }
    text += name + "\n";
    for (const auto& [place, cost] : by_place) {
      char line[240];
      std::snprintf(line, sizeof line, "  %-46s %8lld requests, %4.1f lanes, %s x%.2f\n",
                    place.c_str(), static_cast<long long>(cost.requests),
                    double(cost.lanes) / double(cost.requests),
                    cost.memory == Memory::shared ? "bank passes" : "32-byte sectors",
                    double(cost.moved) / double(std::max<int64_t>(1, cost.least)));
      text += line;
    }
  }
  return text;
}

LineCost Counters::total(const std::string& part, Memory memory) const {
  LineCost sum;
  sum.memory = memory;
  for (const auto& [name, lines] : kernels_)
    for (const auto& [code, cost] : lines) {
      if (name.find(part) == name.npos || cost.memory != memory) continue;
      sum.requests += cost.requests;
      sum.lanes += cost.lanes;
      sum.moved += cost.moved;
      sum.least += cost.least;
    }
  return sum;
}

}  // namespace tg::simt::hooks
