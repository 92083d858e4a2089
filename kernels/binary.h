// Elementwise functions of two operands (functors in kernels/binary_ops.h), comparisons and the
// choice between two operands.
#pragma once
#include "tapegrad/core/scalar.h"
#include "tapegrad/kernels/binary_ops.h"
#include "tapegrad/kernels/dispatch.h"

namespace tg::kernels {

// y = f(a, b). One dtype; a and b broadcast to y's shape. y may be a or b.
void binary(Cpu, const functor::Binary& f, View a, View b, MutView y);
void binary(Cuda, const functor::Binary& f, View a, View b, MutView y);
void binary(Cpu, const functor::Binary& f, View a, Scalar b, MutView y);
void binary(Cuda, const functor::Binary& f, View a, Scalar b, MutView y);

// y (bool) = a ? b. One dtype for a and b. With NaN all but ne are false.
enum class Compare { eq, ne, lt, le, gt, ge };
void compare(Cpu, Compare how, View a, View b, MutView y);
void compare(Cuda, Compare how, View a, View b, MutView y);
void compare(Cpu, Compare how, View a, Scalar b, MutView y);
void compare(Cuda, Compare how, View a, Scalar b, MutView y);

// y (bool) of truth values: an element counts as true unless it is zero.
enum class Logical { and_, or_, xor_ };
void logical(Cpu, Logical how, View a, View b, MutView y);
void logical(Cuda, Logical how, View a, View b, MutView y);

// y = condition ? a : b. condition is bool; a, b and y have one dtype; all broadcast to y's shape.
void where(Cpu, View condition, View a, View b, MutView y);
void where(Cuda, View condition, View a, View b, MutView y);

}  // namespace tg::kernels
