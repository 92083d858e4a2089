// The functions that code compiled with -fsanitize=thread calls, in place of that sanitizer's
// library. Never linked together with it.
#include <cstddef>
#include <cstdint>

#include "tapegrad/kernels/simt/hooks/access.h"

namespace {

using tg::simt::hooks::on_access;

template <class T>
bool compare_exchange(volatile T* place, T* expected, T value, const void* code) {
  on_access(const_cast<T*>(place), sizeof(T), true, true, code);
  return __atomic_compare_exchange_n(place, expected, value, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST);
}
template <class T>
T load(const volatile T* place, const void* code) {
  on_access(const_cast<T*>(place), sizeof(T), false, true, code);
  return __atomic_load_n(place, __ATOMIC_SEQ_CST);
}
template <class T>
void store(volatile T* place, T value, const void* code) {
  on_access(const_cast<T*>(place), sizeof(T), true, true, code);
  __atomic_store_n(place, value, __ATOMIC_SEQ_CST);
}
template <class T>
T add(volatile T* place, T value, const void* code) {
  on_access(const_cast<T*>(place), sizeof(T), true, true, code);
  return __atomic_fetch_add(place, value, __ATOMIC_SEQ_CST);
}

}  // namespace

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_atomic_thread_fence(int) {}
void __tsan_atomic_signal_fence(int) {}

void __tsan_read1(void* p) { on_access(p, 1, false, false, __builtin_return_address(0)); }
void __tsan_read2(void* p) { on_access(p, 2, false, false, __builtin_return_address(0)); }
void __tsan_read4(void* p) { on_access(p, 4, false, false, __builtin_return_address(0)); }
void __tsan_read8(void* p) { on_access(p, 8, false, false, __builtin_return_address(0)); }
void __tsan_read16(void* p) { on_access(p, 16, false, false, __builtin_return_address(0)); }
void __tsan_write1(void* p) { on_access(p, 1, true, false, __builtin_return_address(0)); }
void __tsan_write2(void* p) { on_access(p, 2, true, false, __builtin_return_address(0)); }
void __tsan_write4(void* p) { on_access(p, 4, true, false, __builtin_return_address(0)); }
void __tsan_write8(void* p) { on_access(p, 8, true, false, __builtin_return_address(0)); }
void __tsan_write16(void* p) { on_access(p, 16, true, false, __builtin_return_address(0)); }
void __tsan_unaligned_read2(void* p) { on_access(p, 2, false, false, __builtin_return_address(0)); }
void __tsan_unaligned_read4(void* p) { on_access(p, 4, false, false, __builtin_return_address(0)); }
void __tsan_unaligned_read8(void* p) { on_access(p, 8, false, false, __builtin_return_address(0)); }
void __tsan_unaligned_read16(void* p) {
  on_access(p, 16, false, false, __builtin_return_address(0));
}
void __tsan_unaligned_write2(void* p) { on_access(p, 2, true, false, __builtin_return_address(0)); }
void __tsan_unaligned_write4(void* p) { on_access(p, 4, true, false, __builtin_return_address(0)); }
void __tsan_unaligned_write8(void* p) { on_access(p, 8, true, false, __builtin_return_address(0)); }
void __tsan_unaligned_write16(void* p) {
  on_access(p, 16, true, false, __builtin_return_address(0));
}
void __tsan_read_range(void* p, size_t n) {
  on_access(p, unsigned(n), false, false, __builtin_return_address(0));
}
void __tsan_write_range(void* p, size_t n) {
  on_access(p, unsigned(n), true, false, __builtin_return_address(0));
}

int __tsan_atomic16_compare_exchange_strong(volatile uint16_t* p, uint16_t* c, uint16_t v, int,
                                            int) {
  return compare_exchange(p, c, v, __builtin_return_address(0));
}
int __tsan_atomic32_compare_exchange_strong(volatile uint32_t* p, uint32_t* c, uint32_t v, int,
                                            int) {
  return compare_exchange(p, c, v, __builtin_return_address(0));
}
int __tsan_atomic64_compare_exchange_strong(volatile uint64_t* p, uint64_t* c, uint64_t v, int,
                                            int) {
  return compare_exchange(p, c, v, __builtin_return_address(0));
}
uint8_t __tsan_atomic8_load(const volatile uint8_t* p, int) {
  return load(p, __builtin_return_address(0));
}
uint16_t __tsan_atomic16_load(const volatile uint16_t* p, int) {
  return load(p, __builtin_return_address(0));
}
uint32_t __tsan_atomic32_load(const volatile uint32_t* p, int) {
  return load(p, __builtin_return_address(0));
}
uint64_t __tsan_atomic64_load(const volatile uint64_t* p, int) {
  return load(p, __builtin_return_address(0));
}
void __tsan_atomic32_store(volatile uint32_t* p, uint32_t v, int) {
  store(p, v, __builtin_return_address(0));
}
void __tsan_atomic64_store(volatile uint64_t* p, uint64_t v, int) {
  store(p, v, __builtin_return_address(0));
}
uint32_t __tsan_atomic32_fetch_add(volatile uint32_t* p, uint32_t v, int) {
  return add(p, v, __builtin_return_address(0));
}
uint64_t __tsan_atomic64_fetch_add(volatile uint64_t* p, uint64_t v, int) {
  return add(p, v, __builtin_return_address(0));
}
}
