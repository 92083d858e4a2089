#include "tapegrad/core/storage.h"

namespace tg {

Ref<Storage> make_storage(Device device, size_t bytes, Purpose purpose) {
  void* data = allocate(device, bytes, purpose);  // first: it may throw
  auto* s = new Storage;
  s->device = device;
  s->purpose = purpose;
  s->data = data;
  s->bytes = bytes;
  return Ref<Storage>::adopt(s);
}

Ref<Storage> wrap_storage(Device device, void* data, size_t bytes, Function<void()> release) {
  auto* s = new Storage;
  s->device = device;
  s->data = data;
  s->bytes = bytes;
  s->release = release ? std::move(release) : Function<void()>([] {});
  return Ref<Storage>::adopt(s);
}

void destroy(Storage* s) {
  if (s->release) {
    s->release();
  } else {
    deallocate(s->device, s->data, s->bytes, s->purpose);
  }
  delete s;
}

}  // namespace tg
