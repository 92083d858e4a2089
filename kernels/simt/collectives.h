// Barriers, shuffles and votes, by the names that CUDA gives them.
#pragma once
#include <cstring>
#include <type_traits>

#include "tapegrad/kernels/simt/engine.h"

namespace tg::simt {

template <class T>
struct Shuffle {
  T mine, got;
  int source;
};

template <class T>
T shuffle(unsigned mask, T value, int source, const char* what, Place place) {
  static_assert(std::is_trivially_copyable_v<T>);
  Shuffle<T> own{value, value, source};
  auto meet = +[](void* const* payloads, unsigned lanes) {
    for (int i = 0; i < 32; ++i) {
      if (!(lanes >> i & 1)) continue;
      auto* s = static_cast<Shuffle<T>*>(payloads[i]);
      if (lanes >> s->source & 1)
        s->got = static_cast<Shuffle<T>*>(payloads[s->source])->mine;
      else  // a lane that does not take part has no value: poison
        std::memset(static_cast<void*>(&s->got), 0xFF, sizeof(T));
    }
  };
  warp_meeting(mask, meet, &own, what, place);
  return own.got;
}

struct Ballot {
  bool mine;
  unsigned all;
};
inline unsigned ballot(unsigned mask, bool mine, const char* what, Place place) {
  Ballot own{mine, 0};
  auto meet = +[](void* const* payloads, unsigned lanes) {
    unsigned all = 0;
    for (int i = 0; i < 32; ++i)
      if ((lanes >> i & 1) && static_cast<Ballot*>(payloads[i])->mine) all |= 1u << i;
    for (int i = 0; i < 32; ++i)
      if (lanes >> i & 1) static_cast<Ballot*>(payloads[i])->all = all;
  };
  warp_meeting(mask, meet, &own, what, place);
  return own.all;
}

// Where a shuffle within groups of `width` lanes reads; out of the group: the lane itself.
inline int first_of_group(int width) { return int(lane()) & ~(width - 1); }
inline int within_group(int source, int width) {
  const int first = first_of_group(width);
  return source >= first && source < first + width ? source : int(lane());
}

}  // namespace tg::simt

inline void __syncthreads(tg::simt::Place place = tg::simt::Place::here()) {
  tg::simt::block_barrier(place);
}
inline int __syncthreads_count(int mine, tg::simt::Place place = tg::simt::Place::here()) {
  return tg::simt::block_votes(mine != 0, place).yes;
}
inline int __syncthreads_and(int mine, tg::simt::Place place = tg::simt::Place::here()) {
  tg::simt::Votes votes = tg::simt::block_votes(mine != 0, place);
  return votes.yes == votes.all;
}
inline int __syncthreads_or(int mine, tg::simt::Place place = tg::simt::Place::here()) {
  return tg::simt::block_votes(mine != 0, place).yes > 0;
}
inline void __syncwarp(unsigned mask = 0xffffffffu,
                       tg::simt::Place place = tg::simt::Place::here()) {
  tg::simt::warp_meeting(mask, nullptr, nullptr, "__syncwarp", place);
}

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32,
              tg::simt::Place place = tg::simt::Place::here()) {
  const int from = tg::simt::first_of_group(width) | (source & (width - 1));
  return tg::simt::shuffle(mask, value, from, "__shfl_sync", place);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int flip, int width = 32,
                  tg::simt::Place place = tg::simt::Place::here()) {
  const int from = tg::simt::within_group(int(tg::simt::lane()) ^ flip, width);
  return tg::simt::shuffle(mask, value, from, "__shfl_xor_sync", place);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32,
                   tg::simt::Place place = tg::simt::Place::here()) {
  const int from = tg::simt::within_group(int(tg::simt::lane() + distance), width);
  return tg::simt::shuffle(mask, value, from, "__shfl_down_sync", place);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32,
                 tg::simt::Place place = tg::simt::Place::here()) {
  const int from = tg::simt::within_group(int(tg::simt::lane()) - int(distance), width);
  return tg::simt::shuffle(mask, value, from, "__shfl_up_sync", place);
}
inline unsigned __ballot_sync(unsigned mask, int mine,
                              tg::simt::Place place = tg::simt::Place::here()) {
  return tg::simt::ballot(mask, mine != 0, "__ballot_sync", place);
}
inline int __any_sync(unsigned mask, int mine, tg::simt::Place place = tg::simt::Place::here()) {
  return tg::simt::ballot(mask, mine != 0, "__any_sync", place) != 0;
}
inline int __all_sync(unsigned mask, int mine, tg::simt::Place place = tg::simt::Place::here()) {
  return tg::simt::ballot(mask, mine == 0, "__all_sync", place) == 0;
}

[[noreturn]] inline void __trap(tg::simt::Place place = tg::simt::Place::here()) {
  tg::simt::fault("__trap()", place);
}
