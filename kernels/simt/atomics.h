// Atomic operations on global and shared memory, and fences, by the names that CUDA gives them.
// Blocks run on several threads of the system, so they are atomic here too.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace tg::simt {

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 2, uint16_t,
                                  std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;

// *place = change(*place) in one step; gives back what stood there before.
template <class T, class Change>
T atomic_change(T* place, Change change) {
  using Bits = BitsOf<T>;
  static_assert(sizeof(T) == sizeof(Bits));
  auto* bits = reinterpret_cast<Bits*>(place);
  Bits before = __atomic_load_n(bits, __ATOMIC_RELAXED), after;
  T old;
  do {
    std::memcpy(&old, &before, sizeof old);
    T changed = change(old);
    std::memcpy(&after, &changed, sizeof after);
  } while (!__atomic_compare_exchange_n(bits, &before, after, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
  return old;
}

}  // namespace tg::simt

template <class T>
T atomicAdd(T* place, std::type_identity_t<T> value) {
  return tg::simt::atomic_change(place, [value](T old) { return T(old + value); });
}
template <class T>
T atomicMax(T* place, std::type_identity_t<T> value) {
  return tg::simt::atomic_change(place, [value](T old) { return old > value ? old : value; });
}
template <class T>
T atomicMin(T* place, std::type_identity_t<T> value) {
  return tg::simt::atomic_change(place, [value](T old) { return old < value ? old : value; });
}
template <class T>
T atomicOr(T* place, std::type_identity_t<T> value) {
  return tg::simt::atomic_change(place, [value](T old) { return T(old | value); });
}
template <class T>
T atomicAnd(T* place, std::type_identity_t<T> value) {
  return tg::simt::atomic_change(place, [value](T old) { return T(old & value); });
}
template <class T>
T atomicExch(T* place, std::type_identity_t<T> value) {
  return tg::simt::atomic_change(place, [value](T) { return value; });
}
template <class T>
T atomicCAS(T* place, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return tg::simt::atomic_change(place, [=](T old) { return old == expected ? value : old; });
}

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
