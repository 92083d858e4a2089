// Who goes and who stays, for dropout and for the weights of attention.
#pragma once
#include <cmath>
#include <cstdint>

#include "tapegrad/kernels/dropout.h"

namespace tg::kernels {

class DropoutDraw {
 public:
  // u < p for u = (word >> 8) 2^-24 is a comparison of whole numbers.
  explicit DropoutDraw(const Dropout& dropout)
      : state_(dropout.state),
        bound_(uint32_t(std::ceil(dropout.probability * 0x1p24))),
        factor_(dropout.probability < 1 ? 1 / (1 - dropout.probability) : 0) {}
  // The words of elements 4 index .. 4 index + 3.
  RandomBlock block(uint64_t index) const { return random_block(state_, index); }
  bool keeps(uint32_t word) const { return word >> 8 >= bound_; }
  double factor() const { return factor_; }
  uint32_t bound() const { return bound_; }

 private:
  RandomState state_;
  uint32_t bound_;
  double factor_;
};

}  // namespace tg::kernels
