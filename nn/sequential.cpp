#include "tapegrad/nn/sequential.h"

namespace tg::nn {

void Sequential::push_back(AnyModule module) {
  check<ValueError>(bool(module), "Sequential: an AnyModule that holds no module cannot be step",
                    steps_.size());
  steps_.push_back(std::move(module));
}

Module& Sequential::operator[](size_t i) const {
  check<IndexError>(i < steps_.size(), "Sequential: there is no module", i, "among", steps_.size());
  return steps_[i].module();
}

Tensor Sequential::forward(const Tensor& x) {
  check(x.defined(), "the input is undefined");
  Tensor y = x;
  for (AnyModule& step : steps_) y = step(y);
  return y;
}

void Sequential::visit_members(MemberVisitor& visitor) {
  for (size_t i = 0; i < steps_.size(); ++i) visitor.module(std::to_string(i), steps_[i].module());
}

Sequential Sequential::remake() const {
  Sequential fresh;
  for (const AnyModule& step : steps_) fresh.push_back(step.remake());
  return fresh;
}

}  // namespace tg::nn
