// The operator table: one row per operator. The same rows drive the tests of values, layouts,
// dtypes, gradients, threads and errors (table_test.cpp), the references (tools/make_references.py
// walks them), the coverage page and the benchmark.
//
// To add an operator's row: add it to the function of its family in tests/ops/<family>.cpp (a new
// family: declare it below and name it in families()), then run tools/make_references.py.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "tapegrad/autograd/ops.h"

namespace tg::test {

using Tensors = std::vector<Tensor>;
using Call = Function<Tensors(const Tensors&)>;

// How the elements of an input are chosen. Every value is exact in bf16, so that all dtypes see the
// same numbers and one f64 reference serves them all. Element i of input k is made from
// v = (73 i + 101 k) mod 251, which does not repeat below 251 elements:
enum class Domain {
  normal,    // (v - 125) / 64, never 0: in [-1.96, 1.96]
  positive,  // (v + 1) / 64: in (0, 3.93]
  unit,      // (v mod 125 + 1) / 128: in (0, 1)
  integer,   // low + v mod (high - low), of type i64
  boolean,   // v odd
  values,    // as listed
};
// Where a row claims an integer dtype, `normal`, `positive` and `unit` inputs are v mod 7 instead,
// and there is a second reference for them.

struct In {
  Shape shape;
  Domain domain = Domain::normal;
  int64_t low = 0, high = 10;  // integer
  std::vector<double> listed;  // values; may hold NaN and infinities
  bool grad = true;            // float inputs: take the derivative towards it
};
inline In normal(Shape shape) { return {shape, Domain::normal, 0, 0, {}, true}; }
inline In positive(Shape shape) { return {shape, Domain::positive, 0, 0, {}, true}; }
inline In unit(Shape shape) { return {shape, Domain::unit, 0, 0, {}, true}; }
inline In integers(Shape shape, int64_t low, int64_t high) {
  return {shape, Domain::integer, low, high, {}, false};
}
inline In booleans(Shape shape) { return {shape, Domain::boolean, 0, 0, {}, false}; }
inline In values(Shape shape, std::vector<double> listed) {
  return {shape, Domain::values, 0, 0, std::move(listed), true};
}
inline In constant(In in) {  // no derivative towards it
  in.grad = false;
  return in;
}

struct Sample {
  std::vector<In> in;
  Call call;
  std::string torch;   // the same in Python, of x0, x1, ... (torch, F, np, math known)
  bool smooth = true;  // false: values that sit on a kink or are not finite; no gradcheck
};

struct Fails {  // a call that must raise, and a part of the message
  Tensors (*call)();
  std::string message;
};

// The parts a row may opt out of, with a written reason. forward_split, backward_split: that this
// pass of the large sample is cut into pieces for the threads (a view moves nothing).
enum class Part {
  gradient,
  second_derivative,
  layouts,
  threads,
  forward_split,
  backward_split,
  low_precision
};
struct OptOut {
  Part part;
  std::string reason;
};

struct Row {
  std::string name;  // of the operator, as declared in autograd/ops/
  std::vector<Sample> samples = {};
  std::vector<DType> dtypes = {f32, f64, f16, bf16};  // of the float (or all-integer) inputs
  Function<Tensors(const Tensors&)> inplace = {};     // writes x[0], returns it; same value
  std::vector<Fails> fails = {};
  std::vector<OptOut> opt_outs = {};
  // Allowed relative error in units of the dtype's epsilon, and absolute relative to the largest
  // reference value; sums and products of n terms need more than one rounding.
  double ulps = 8;
  // A sample of about three times the grain, big enough to be cut into at least three pieces for
  // the threads, forward and backward (asserted), and what it costs, for the benchmark: bytes read
  // and written, and floating-point operations. Every row has one, or opts out of `threads`.
  Function<Sample()> large = {};
  Function<double(const Tensors& in, const Tensors& out)> flops = {};
};
using Rows = std::vector<Row>;

// The families; one function each.
Rows arithmetic_rows();
Rows comparison_rows();
Rows unary_rows();
Rows reduction_rows();
Rows matmul_rows();
Rows softmax_rows();
Rows loss_rows();
Rows conv_rows();
Rows pooling_rows();
Rows normalization_rows();
Rows batch_norm_rows();
Rows embedding_rows();
Rows attention_rows();
Rows dropout_rows();
Rows creation_rows();
Rows view_rows();
Rows joining_rows();
Rows indexing_rows();
Rows sorting_rows();
Rows random_rows();

struct Family {
  std::string name;
  Rows rows;
};
const std::vector<Family>& families();

// The input that `in` describes, number `k` of its sample; float ones in `dtype`.
Tensor make_input(const In& in, int k, DType dtype);
// Inputs of a sample; in f64 with requires_grad where asked.
Tensors make_inputs(const Sample& sample, DType dtype, bool requires_grad = false);
// The fixed incoming gradient of output k.
Tensor make_gradient(const Tensor& y, int k);

}  // namespace tg::test
