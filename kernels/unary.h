// Elementwise functions of one operand (functors in kernels/unary_ops.h).
#pragma once
#include "tapegrad/kernels/dispatch.h"
#include "tapegrad/kernels/unary_ops.h"

namespace tg::kernels {

// y = f(x). One dtype, one shape, any strides. y may be x. Floats of every width; integers where
// the functor says on_integers (InternalError otherwise).
void unary(Cpu, const functor::Unary& f, View x, MutView y);
void unary(Cuda, const functor::Unary& f, View x, MutView y);

// dx = df(saved, dy). Float dtypes; one shape. `saved` is what the functor names (dy again if it
// needs nothing). dx may be dy.
void unary_grad(Cpu, const functor::Unary& f, View saved, View dy, MutView dx);
void unary_grad(Cuda, const functor::Unary& f, View saved, View dy, MutView dx);

// y (bool) says of each element of x: is it NaN, infinite, finite, zero.
enum class Test { nan, inf, finite, zero };
void test(Cpu, Test question, View x, MutView y);
void test(Cuda, Test question, View x, MutView y);

}  // namespace tg::kernels
