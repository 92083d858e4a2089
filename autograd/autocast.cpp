#include "tapegrad/autograd/autocast.h"

#include "tapegrad/autograd/ops/creation.h"

namespace tg {

Tensor autocast_input(const Tensor& x, Cast rule) {
  if (!x.is_floating() || x.dtype() == f64) return x;
  DType wanted = x.dtype();
  if (rule == Cast::low) wanted = thread_state.autocast_dtype;
  if (rule == Cast::f32) wanted = f32;
  return wanted == x.dtype() ? x : cast(x, wanted);
}

Autocast::Autocast(DType dtype, bool enabled)
    : old_enabled_(thread_state.autocast), old_dtype_(thread_state.autocast_dtype) {
  check<DTypeError>(dtype == bf16 || dtype == f16, "autocast works in bf16 or f16, not in", dtype);
  thread_state.autocast = enabled;
  thread_state.autocast_dtype = dtype;
}

Autocast::~Autocast() {
  thread_state.autocast = old_enabled_;
  thread_state.autocast_dtype = old_dtype_;
}

}  // namespace tg
