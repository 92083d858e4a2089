// Tensors as text for people.
#pragma once
#include <iosfwd>
#include <string>

#include "tapegrad/core/tensor.h"

namespace tg {

// tensor([[1.0000, 0.5000],
//         [2.0000, 1.5000]], dtype=f64)
//
// The columns line up. Numbers have four decimals, none if all are whole ("2."), or an exponent if
// they range too far. Above 1000 elements only the first and last three along each dimension are
// shown. The dtype stands behind unless it is f32, i64 or bool; requires_grad too if it is on. The
// same text in every locale.
std::string to_string(const Tensor& x);
std::ostream& operator<<(std::ostream& out, const Tensor& x);

}  // namespace tg
