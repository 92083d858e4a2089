// Arithmetic of two operands with broadcasting. Mixed dtypes are promoted (core/dtype.h); a
// Scalar keeps the tensor's dtype unless it is of a higher category. Integers wrap around; of two
// bool the sum is "or" and the product "and"; a bool operand of sub, or two of pow, raise a
// DTypeError.
#pragma once
#include "tapegrad/core/tensor.h"

namespace tg {

Tensor add(const Tensor& a, const Tensor& b);
Tensor add(const Tensor& a, Scalar b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, Scalar b);
Tensor sub(Scalar a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, Scalar b);
// True division: integers give f32.
Tensor div(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, Scalar b);
Tensor div(Scalar a, const Tensor& b);
// a^b. Derivative towards a: 0 where b == 0; towards b: 0 where a == 0 and b >= 0.
Tensor pow(const Tensor& a, const Tensor& b);
Tensor pow(const Tensor& a, Scalar b);
Tensor pow(Scalar a, const Tensor& b);
// NaN if either is NaN. At a tie each operand gets half of the gradient.
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator+(const Tensor& a, Scalar b) { return add(a, b); }
inline Tensor operator+(Scalar a, const Tensor& b) { return add(b, a); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator-(const Tensor& a, Scalar b) { return sub(a, b); }
inline Tensor operator-(Scalar a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator*(const Tensor& a, Scalar b) { return mul(a, b); }
inline Tensor operator*(Scalar a, const Tensor& b) { return mul(b, a); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator/(const Tensor& a, Scalar b) { return div(a, b); }
inline Tensor operator/(Scalar a, const Tensor& b) { return div(a, b); }

// In place: the result must have x's shape and a dtype that x can hold (DTypeError otherwise).
const Tensor& add_(const Tensor& x, const Tensor& b);
const Tensor& add_(const Tensor& x, Scalar b);
const Tensor& sub_(const Tensor& x, const Tensor& b);
const Tensor& sub_(const Tensor& x, Scalar b);
const Tensor& mul_(const Tensor& x, const Tensor& b);
const Tensor& mul_(const Tensor& x, Scalar b);
const Tensor& div_(const Tensor& x, const Tensor& b);
const Tensor& div_(const Tensor& x, Scalar b);

}  // namespace tg
