// A number as a view of no dimensions, for kernels that take views.
#pragma once
#include "tapegrad/core/scalar.h"
#include "tapegrad/core/view.h"

namespace tg::kernels {

class ScalarView {
 public:
  // Held in the widest type of its category, so that nothing is lost before the kernel converts.
  explicit ScalarView(Scalar s) : floating_(s.is_floating()) {
    if (floating_)
      real_ = s.to_double();
    else
      integer_ = s.to_int64();
  }
  View view() const {
    static const Shape none;
    if (floating_) return {{&real_, DType::f64, &none, &none, 1}};
    return {{&integer_, DType::i64, &none, &none, 1}};
  }

 private:
  bool floating_;
  union {
    double real_;
    int64_t integer_;
  };
};

}  // namespace tg::kernels
