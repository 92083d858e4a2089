// Intrusive counted pointer. T has `std::atomic<int32_t> refs` and a free function destroy(T*).
#pragma once
#include <atomic>
#include <cstdint>
#include <utility>

namespace tg {

template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* p) : p_(p) {
    if (p_) p_->refs.fetch_add(1, std::memory_order_relaxed);
  }
  // Takes over a count that is already held (a fresh object starts with refs = 1).
  static Ref adopt(T* p) {
    Ref r;
    r.p_ = p;
    return r;
  }
  Ref(const Ref& o) : Ref(o.p_) {}
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Ref& operator=(const Ref& o) {
    Ref(o).swap(*this);
    return *this;
  }
  Ref& operator=(Ref&& o) noexcept {
    Ref(std::move(o)).swap(*this);
    return *this;
  }
  ~Ref() {
    if (p_ && (p_->refs.load(std::memory_order_acquire) == 1 ||
               p_->refs.fetch_sub(1, std::memory_order_acq_rel) == 1))
      destroy(p_);
  }
  void swap(Ref& o) noexcept { std::swap(p_, o.p_); }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  bool operator==(const Ref& o) const { return p_ == o.p_; }
  // Nobody else holds it: what it points to may be changed without being seen.
  bool unique() const { return p_ && p_->refs.load(std::memory_order_acquire) == 1; }

 private:
  T* p_ = nullptr;
};

}  // namespace tg
