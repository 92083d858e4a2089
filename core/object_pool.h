// Memory of the small objects that every tensor is made of: from the allocator's lists per thread,
// which cost a fraction of a malloc. Not counted as tensor memory.
#pragma once
#include <new>
#include <utility>

#include "tapegrad/core/cpu_memory.h"

namespace tg::detail {

inline ThreadMemory* object_memory() {
  ThreadMemory* memory = thread_memory;
  return memory ? memory : start_thread_memory();
}

template <class T>
T* make_object() {
  void* place = take_block(object_memory(), sizeof(T));
  if (!place) throw std::bad_alloc();
  return ::new (place) T;
}

template <class T>
void destroy_object(T* object) {
  object->~T();
  give_block(object_memory(), object, sizeof(T));
}

}  // namespace tg::detail
